// Lists the tools of the server that its arguments start, with mcp-go's client: one name a line.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
)

func list() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	opened, err := client.NewStdioMCPClient(os.Args[1], os.Environ(), os.Args[2:]...)
	if err != nil {
		return err
	}
	defer opened.Close()
	hello := mcp.InitializeRequest{}
	hello.Params.ProtocolVersion = "2025-06-18"
	hello.Params.ClientInfo = mcp.Implementation{Name: "lister", Version: "1"}
	if _, err = opened.Initialize(ctx, hello); err != nil {
		return err
	}
	listed, err := opened.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return err
	}
	for _, tool := range listed.Tools {
		fmt.Println(tool.Name)
	}
	return nil
}

func main() {
	if err := list(); err != nil {
		fmt.Println("error:", err)
	}
}

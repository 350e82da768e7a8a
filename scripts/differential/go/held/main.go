// A server on mcp-go with a tool that answers once it is told to, and resources that can be subscribed to.
package main

import (
	"context"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"differential/record"
)

func main() {
	s := server.NewMCPServer(
		"held", "1",
		server.WithToolCapabilities(false),
		server.WithResourceCapabilities(true, false),
	)
	released := make(chan struct{})
	s.AddTool(mcp.NewTool("hold"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		record.Executed("hold", nil, nil)
		<-released
		return mcp.NewToolResultText("held"), nil
	})
	s.AddTool(mcp.NewTool("release"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		released <- struct{}{}
		return mcp.NewToolResultText("released"), nil
	})
	s.AddTool(mcp.NewTool("say", mcp.WithString("text", mcp.Required())), func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(request.GetString("text", "")), nil
	})
	if err := server.ServeStdio(s); err != nil {
		os.Exit(1)
	}
}

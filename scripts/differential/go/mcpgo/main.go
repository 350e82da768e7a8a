// A server on mcp-go that writes down what it executes.
package main

import (
	"context"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"differential/record"
)

func main() {
	s := server.NewMCPServer("differential", "1", server.WithToolCapabilities(false))
	for _, name := range record.Tools {
		tool := mcp.NewTool(name,
			mcp.WithString("path", mcp.Required()),
			mcp.WithString("text"),
			mcp.WithNumber("count"),
		)
		s.AddTool(tool, func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var arguments record.Arguments
			if err := request.BindArguments(&arguments); err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			record.Executed(name, arguments.Path, request.GetArguments())
			return mcp.NewToolResultText("done"), nil
		})
	}
	if err := server.ServeStdio(s); err != nil {
		os.Exit(1)
	}
}

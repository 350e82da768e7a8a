// A server on mcp-go that writes down what it executes.
package main

import (
	"context"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"differential/record"
)

// opened is what the arguments of both tools have in common.
type opened interface{ Opened() []string }

func add[A opened](s *server.MCPServer, name string, options ...mcp.ToolOption) {
	s.AddTool(mcp.NewTool(name, options...), func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var arguments A
		if err := request.BindArguments(&arguments); err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		record.Executed(name, arguments.Opened(), request.GetArguments())
		return mcp.NewToolResultText("done"), nil
	})
}

func main() {
	s := server.NewMCPServer("differential", "1", server.WithToolCapabilities(false))
	for _, name := range record.Tools {
		add[record.Note](s, name,
			mcp.WithString("path", mcp.Required()),
			mcp.WithString("text"),
			mcp.WithNumber("count"),
		)
	}
	add[record.Notes](s, record.Many,
		mcp.WithArray("paths", mcp.Required(), mcp.WithStringItems()),
		mcp.WithObject("below", mcp.Properties(map[string]any{
			"path": map[string]any{"type": "string"},
			"deep": map[string]any{"type": "boolean"},
		})),
		mcp.WithNumber("lines"),
		mcp.WithArray("flags", mcp.WithBooleanItems()),
	)
	if record.OverHTTP() {
		record.Serve(server.NewStreamableHTTPServer(s))
	}
	if err := server.ServeStdio(s); err != nil {
		os.Exit(1)
	}
}

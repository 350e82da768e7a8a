// A server on the official Go SDK that writes down what it executes.
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"differential/record"
)

func main() {
	s := mcp.NewServer(&mcp.Implementation{Name: "differential", Version: "1"}, nil)
	for _, name := range record.Tools {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(_ context.Context, request *mcp.CallToolRequest, arguments record.Arguments) (*mcp.CallToolResult, any, error) {
			var all map[string]any
			if err := json.Unmarshal(request.Params.Arguments, &all); err != nil {
				return nil, nil, err
			}
			record.Executed(name, arguments.Path, all)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
		})
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

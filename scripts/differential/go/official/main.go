// A server on the official Go SDK that writes down what it executes.
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"differential/record"
)

// opened is what the arguments of both tools have in common.
type opened interface{ Opened() []string }

func add[A opened](s *mcp.Server, name string) {
	mcp.AddTool(s, &mcp.Tool{Name: name}, func(_ context.Context, request *mcp.CallToolRequest, arguments A) (*mcp.CallToolResult, any, error) {
		var all map[string]any
		if err := json.Unmarshal(request.Params.Arguments, &all); err != nil {
			return nil, nil, err
		}
		record.Executed(name, arguments.Opened(), all)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	})
}

// handler keeps sessions for the revisions that have them; 2026-07-28 is spoken without.
func handler(s *mcp.Server) http.Handler {
	same := func(*http.Request) *mcp.Server { return s }
	sessions := mcp.NewStreamableHTTPHandler(same, nil)
	stateless := mcp.NewStreamableHTTPHandler(same, &mcp.StreamableHTTPOptions{Stateless: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= "2026" {
			stateless.ServeHTTP(w, r)
		} else {
			sessions.ServeHTTP(w, r)
		}
	})
}

func main() {
	s := mcp.NewServer(&mcp.Implementation{Name: "differential", Version: "1"}, nil)
	for _, name := range record.Tools {
		add[record.Note](s, name)
	}
	add[record.Notes](s, record.Many)
	if record.OverHTTP() {
		record.Serve(handler(s))
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// A server on mcp-go, or with the argument "official" on the official Go SDK, whose tools decode a json.RawMessage, and
// the text of one once more. It writes down every string of each value that a tool receives.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	bound "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"differential/record"
)

// given has both arguments of each tool as they came.
type given struct {
	Paths json.RawMessage `json:"paths,omitempty"`
	Items json.RawMessage `json:"items,omitempty"`
}

// nested is a model that holds itself.
type nested struct {
	Path  string  `json:"path,omitempty"`
	More  []any   `json:"more,omitempty"`
	Below *nested `json:"below,omitempty"`
}

// into decodes a value as a T, or the text that it is.
func into[T any](raw json.RawMessage) (any, error) {
	var value T
	if len(raw) == 0 {
		return value, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = bytes.TrimSpace([]byte(text))
	}
	err := json.Unmarshal(raw, &value)
	return value, err
}

// either decodes a list or a map if it can, and else takes the text.
func either(raw json.RawMessage) (any, error) {
	if value, err := into[any](raw); err == nil {
		return value, nil
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err
}

var tools = map[string]func(json.RawMessage) (any, error){
	"take_list":  into[[]any],
	"take_texts": into[[]string],
	"take_map":   into[map[string]any],
	"take_union": either,
	"take_model": into[nested],
	"take_json":  into[any],
}

// strings are all strings of a value, names of members included.
func strings(value any) []string {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []string:
		return value
	case []any:
		var all []string
		for _, part := range value {
			all = append(all, strings(part)...)
		}
		return all
	case map[string]any:
		var all []string
		for name, part := range value {
			all = append(append(all, name), strings(part)...)
		}
		return all
	case nested:
		all := append([]string{value.Path}, strings(value.More)...)
		if value.Below != nil {
			all = append(all, strings(*value.Below)...)
		}
		return all
	}
	return nil
}

func execute(tool string, arguments given) error {
	var all []string
	for _, raw := range []json.RawMessage{arguments.Paths, arguments.Items} {
		value, err := tools[tool](raw)
		if err != nil {
			return err
		}
		all = append(all, strings(value)...)
	}
	record.Line(map[string]any{"tool": tool, "strings": all})
	return nil
}

func official() error {
	s := mcp.NewServer(&mcp.Implementation{Name: "coerced", Version: "1"}, nil)
	any := json.RawMessage(`{"type":"object","properties":{"paths":{},"items":{}}}`)
	for name := range tools {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: any}, func(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var arguments given
			if err := json.Unmarshal(request.Params.Arguments, &arguments); err != nil {
				return nil, err
			}
			if err := execute(name, arguments); err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		})
	}
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

func mcpgo() error {
	s := server.NewMCPServer("coerced", "1", server.WithToolCapabilities(false))
	for name := range tools {
		tool := bound.NewTool(name, bound.WithAny("paths"), bound.WithAny("items"))
		s.AddTool(tool, func(_ context.Context, request bound.CallToolRequest) (*bound.CallToolResult, error) {
			var arguments given
			if err := request.BindArguments(&arguments); err != nil {
				return bound.NewToolResultError(err.Error()), nil
			}
			if err := execute(name, arguments); err != nil {
				return bound.NewToolResultError(err.Error()), nil
			}
			return bound.NewToolResultText("done"), nil
		})
	}
	return server.ServeStdio(s)
}

func main() {
	run := mcpgo
	if len(os.Args) > 1 && os.Args[1] == "official" {
		run = official
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

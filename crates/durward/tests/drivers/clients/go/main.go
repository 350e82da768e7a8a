// Drives the official Go SDK's client against the everything server: `client WAYS`.
//
// WAYS is a JSON object of ways to the server: a list of words is a command, a string is an address. Prints what was
// seen on each way. Nothing in it depends on what stands on the way.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Seen is what a client has seen on one way.
type Seen struct {
	mu        sync.Mutex
	Progress  [][2]float64 `json:"progress"`
	Asked     int          `json:"asked"`
	Told      bool         `json:"told"`
	Echo      string       `json:"echo"`
	Tools     []string     `json:"tools"`
	Stepped   string       `json:"stepped"`
	Elicited  bool         `json:"elicited"`
	Cancelled bool         `json:"cancelled"`
	Refused   *string      `json:"refused"`
	After     string       `json:"after"`
}

func (s *Seen) told() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Told
}

func (s *Seen) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.Asked++
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.Told = true
		},
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.Progress = append(s.Progress, [2]float64{request.Params.Progress, request.Params.Total})
		},
	}
}

func transport(way any) mcp.Transport {
	if url, ok := way.(string); ok {
		return &mcp.StreamableClientTransport{Endpoint: url}
	}
	words := way.([]any)
	arguments := make([]string, 0, len(words))
	for _, word := range words[1:] {
		arguments = append(arguments, word.(string))
	}
	return &mcp.CommandTransport{Command: exec.Command(words[0].(string), arguments...)}
}

func text(result *mcp.CallToolResult) string {
	var parts []string
	for _, part := range result.Content {
		if text, ok := part.(*mcp.TextContent); ok {
			parts = append(parts, text.Text)
		}
	}
	return strings.Join(parts, "\n")
}

func call(ctx context.Context, session *mcp.ClientSession, name string, arguments map[string]any) (string, error) {
	params := &mcp.CallToolParams{Name: name, Arguments: arguments}
	if arguments["steps"] != nil {
		params.Meta = mcp.Meta{"progressToken": "p"}
	}
	result, err := session.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	if result.IsError {
		return "", fmt.Errorf("%s", text(result))
	}
	return text(result), nil
}

func steps(ctx context.Context, way any) (*Seen, error) {
	seen := &Seen{Progress: [][2]float64{}}
	client := mcp.NewClient(&mcp.Implementation{Name: "driver", Version: "1"}, seen.options())
	session, err := client.Connect(ctx, transport(way), nil)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if seen.Echo, err = call(ctx, session, "echo", map[string]any{"message": "x"}); err != nil {
		return nil, err
	}
	for n := 0; n < 200 && !seen.told(); n++ {
		time.Sleep(10 * time.Millisecond)
	}
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, tool := range list.Tools {
		seen.Tools = append(seen.Tools, tool.Name)
	}
	sort.Strings(seen.Tools)
	long := "trigger-long-running-operation"
	if seen.Stepped, err = call(ctx, session, long, map[string]any{"duration": 0.2, "steps": 2}); err != nil {
		return nil, err
	}
	answer, err := call(ctx, session, "trigger-elicitation-request", map[string]any{})
	if err != nil {
		return nil, err
	}
	seen.Elicited = strings.Contains(answer, "Ada")
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = call(short, session, long, map[string]any{"duration": 3, "steps": 1})
	seen.Cancelled = err != nil
	if _, err = call(ctx, session, "echo", map[string]any{"message": "/forbidden/x"}); err != nil {
		refused := err.Error()
		seen.Refused = &refused
	}
	if seen.After, err = call(ctx, session, "echo", map[string]any{"message": "y"}); err != nil {
		return nil, err
	}
	// A server that is a child may be ended by force: what counts was seen before.
	_ = session.Close()
	return seen, nil
}

func main() {
	var ways map[string]any
	if err := json.Unmarshal([]byte(os.Args[1]), &ways); err != nil {
		panic(err)
	}
	all := map[string]*Seen{}
	for name, way := range ways {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		seen, err := steps(ctx, way)
		cancel()
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
		all[name] = seen
	}
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		panic(err)
	}
}

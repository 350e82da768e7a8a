// Package record is what the servers have in common: the tools, and the book of what was executed.
package record

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
)

// Tools are the names of the tools that take a Note.
var Tools = []string{"read_note", "delete_note"}

// Many is the name of the tool that takes Notes.
const Many = "read_notes"

// Note has the arguments of a tool, as Go decodes them.
type Note struct {
	Path  string  `json:"path"`
	Text  string  `json:"text,omitempty"`
	Count float64 `json:"count,omitempty"`
}

// Below is what Notes may hold.
type Below struct {
	Path string `json:"path,omitempty"`
	Deep bool   `json:"deep,omitempty"`
}

// Notes has the arguments of Many.
type Notes struct {
	Paths []string `json:"paths"`
	Below *Below   `json:"below,omitempty"`
	Lines int      `json:"lines,omitempty"`
	Flags []bool   `json:"flags,omitempty"`
}

// Opened are the paths that the tool would open.
func (n Note) Opened() []string { return []string{n.Path} }

// Opened are the paths that the tool would open.
func (n Notes) Opened() []string {
	paths := n.Paths
	if n.Below != nil && n.Below.Path != "" {
		paths = append(paths, n.Below.Path)
	}
	return paths
}

var mutex sync.Mutex

// Executed writes what a tool executes, before the tool answers.
func Executed(tool string, paths []string, arguments map[string]any) {
	Line(map[string]any{"tool": tool, "paths": paths, "arguments": arguments})
}

// Line writes a line into the file that DIFFERENTIAL_LOG names.
func Line(of map[string]any) {
	line, err := json.Marshal(of)
	if err != nil {
		panic(err)
	}
	mutex.Lock()
	defer mutex.Unlock()
	file, err := os.OpenFile(os.Getenv("DIFFERENTIAL_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

// OverHTTP is whether the server was asked to listen.
func OverHTTP() bool { return len(os.Args) > 1 && os.Args[1] == "http" }

// Serve listens, says where in its first line, and answers until it is killed.
func Serve(handler http.Handler) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	panic(http.Serve(listener, handler))
}

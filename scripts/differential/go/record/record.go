// Package record is what the servers have in common: the tools, and the book of what was executed.
package record

import (
	"encoding/json"
	"os"
	"sync"
)

// Tools are the names of the tools.
var Tools = []string{"read_note", "delete_note"}

// Arguments are those of each tool, as Go decodes them.
type Arguments struct {
	Path  string  `json:"path"`
	Text  string  `json:"text,omitempty"`
	Count float64 `json:"count,omitempty"`
}

var mutex sync.Mutex

// Executed writes a line into the file that DIFFERENTIAL_LOG names, before the tool answers.
func Executed(tool, path string, arguments map[string]any) {
	line, err := json.Marshal(map[string]any{"tool": tool, "path": path, "arguments": arguments})
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

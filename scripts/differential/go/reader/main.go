// What Go reads in frames: a line of standard input each, a line of standard output each.
//
// With the argument "folds" it prints, for each character whose simple case folding joins it with
// others, the character and the least of those.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"unicode"
)

// frame is how mcp-go and many others decode: by struct, so that names are folded.
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		Arguments struct {
			Path string `json:"path"`
			Text string `json:"text"`
		} `json:"arguments"`
	} `json:"params"`
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	if len(os.Args) > 1 && os.Args[1] == "folds" {
		folds(out)
		return
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 0, 1<<20), 1<<24)
	for in.Scan() {
		var read frame
		line := map[string]any{}
		if err := json.Unmarshal(in.Bytes(), &read); err != nil {
			line["error"] = err.Error()
		}
		line["id"] = string(read.ID)
		line["method"] = read.Method
		line["name"] = read.Params.Name
		line["path"] = read.Params.Arguments.Path
		line["text"] = read.Params.Arguments.Text
		bytes, err := json.Marshal(line)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(out, "%s\n", bytes)
	}
}

func folds(out *bufio.Writer) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		if least != r {
			fmt.Fprintf(out, "%d %d\n", r, least)
		}
	}
}

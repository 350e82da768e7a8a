// Opens each URL of a JSON list on standard input with net/http: prints the list of those that have the page.
package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	var urls []string
	if err := json.NewDecoder(os.Stdin).Decode(&urls); err != nil {
		panic(err)
	}
	client := http.Client{Timeout: 3 * time.Second}
	opened := []string{}
	for _, url := range urls {
		answer, err := client.Get(url)
		if err != nil {
			continue
		}
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
		answer.Body.Close()
		if strings.Contains(string(body), "THE-PAGE") {
			opened = append(opened, url)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(opened); err != nil {
		panic(err)
	}
}

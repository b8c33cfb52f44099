// A page that costs something, served on port 8080.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
)

type row struct {
	Item  int `json:"item"`
	Costs int `json:"costs"`
}

func page(response http.ResponseWriter, _ *http.Request) {
	rows := []row{}
	for item := range 200 {
		rows = append(rows, row{Item: item, Costs: item * 17 % 101})
	}
	text, err := json.Marshal(rows)
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(response, "%x", sha256.Sum256(text))
}

func main() {
	http.HandleFunc("/", page)
	log.Fatal(http.ListenAndServe(":8080", nil))
}

package main

import (
	"testing"

	"github.com/effectd/effectd/aggregate/operation"
)

// The demo's contract compiles: a fault would show only at the start of its node.
func TestDemoContract(t *testing.T) {
	if _, err := operation.Compile("charge.yaml", []byte(contract("http://127.0.0.1:8099/charges"))); err != nil {
		t.Fatal(err)
	}
}

package home

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestOperationFiles(t *testing.T) {
	h := initHome(t)
	for _, name := range []string{"b.yml", "a.yaml", "c.json", ".hidden.yaml", "d.yaml~"} {
		if err := os.WriteFile(filepath.Join(h.OperationsDir(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(h.OperationsDir(), "e.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	contracts, others, err := h.OperationFiles()
	below := func(names ...string) (out []string) {
		for _, n := range names {
			out = append(out, filepath.Join(h.OperationsDir(), n))
		}
		return out
	}
	if err != nil || !reflect.DeepEqual(contracts, below("a.yaml", "b.yml")) || !reflect.DeepEqual(others, below("c.json", "d.yaml~")) {
		t.Errorf("%v, %v, %v", contracts, others, err)
	}
	if err := os.RemoveAll(h.OperationsDir()); err != nil {
		t.Fatal(err)
	}
	if contracts, others, err := h.OperationFiles(); contracts != nil || others != nil || err != nil {
		t.Errorf("without the directory: %v, %v, %v", contracts, others, err)
	}
}

package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// OperationFiles lists the contracts in operations/, which may be missing, and
// the other files there, which nobody reads. Hidden files and directories are
// neither: editors and mounts leave them.
func (h *Home) OperationFiles() (contracts, others []string, err error) {
	entries, err := os.ReadDir(h.OperationsDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("operations: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		file := filepath.Join(h.OperationsDir(), e.Name())
		switch filepath.Ext(file) {
		case ".yaml", ".yml":
			contracts = append(contracts, file)
		default:
			others = append(others, file)
		}
	}
	return contracts, others, nil
}

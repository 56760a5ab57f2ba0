package embedded

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
)

// announcement is node.json: where the node of a data directory is reached.
type announcement struct {
	NATSURL  string `json:"nats_url"`
	PID      int    `json:"pid"`
	LedgerID string `json:"ledger_id"`
}

func (n *Node) announcementFile() string { return filepath.Join(n.home.Dir(), "node.json") }

// announce tells the commands of this machine where the node is.
func (n *Node) announce() error {
	text, err := json.Marshal(announcement{NATSURL: n.link.url, PID: os.Getpid(), LedgerID: string(n.home.LedgerID())})
	if err != nil {
		return err
	}
	temporary := n.announcementFile() + ".tmp"
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, n.announcementFile())
}

func (n *Node) unannounce() error {
	if err := os.Remove(n.announcementFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

package embedded

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/events"
)

// announcement is node.json: where the node of a data directory is reached, and
// what became of its last reload.
type announcement struct {
	NATSURL  string `json:"nats_url"`
	PID      int    `json:"pid"`
	LedgerID string `json:"ledger_id"`
	Config   string `json:"config"`            // directory of the owner's files
	External bool   `json:"external,omitzero"` // the NATS server is not the node's own
	TLSCA    string `json:"tls_ca,omitzero"`   // file with what to trust of an external server
	TLSCert  string `json:"tls_cert,omitzero"` // the node's own certificate, PEM
	TLSName  string `json:"tls_name,omitzero"` // what that is for
	reload
}

// reload is the last loading of the owner's files, the first at start.
type reload struct {
	Reloads        int64         `json:"reloads"`          // since the start
	Refused        string        `json:"refused,omitzero"` // why the last was
	UsersSHA256    events.Digest `json:"users_sha256"`     // of the table as the last one found it
	PolicySHA256   events.Digest `json:"policy_sha256"`    // of the file as the last one found it
	PolicyRevision int64         `json:"policy_revision"`  // of the law
}

func (n *Node) announcementFile() string { return filepath.Join(n.home.Dir(), "node.json") }

// announce tells the commands of this machine where the node is. The caller holds
// reloading.
func (n *Node) announce() error {
	if n.gone {
		return nil
	}
	_, _, n.reload.PolicyRevision = n.ledger.State().Policy()
	a := announcement{NATSURL: n.link.url, PID: os.Getpid(), LedgerID: string(n.home.LedgerID()), Config: n.opts.Config,
		External: n.link.server == nil, reload: n.reload}
	if a.External {
		a.TLSCA = n.config.TLS.CA
	}
	if n.link.listener != nil {
		own := n.link.listener.now.Load()
		a.TLSCert, a.TLSName = own.PEM(), own.Name
	}
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	temporary := n.announcementFile() + ".tmp"
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, n.announcementFile())
}

// unannounce is final: a reload that ends late announces nothing any more.
func (n *Node) unannounce() error {
	n.reloading.Lock()
	defer n.reloading.Unlock()
	n.gone = true
	if err := os.Remove(n.announcementFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/projector/anchor"
)

// The doctor's checks of files. None of them writes.

func (c *doctorCmd) directory() (*home.Home, diagnosis) {
	h, err := home.Open(c.Data, c.Config)
	if err != nil {
		return nil, fault("directory", err.Error(), "effectd init --data "+c.Data)
	}
	return h, fine("directory", h.Dir()+" holds ledger "+string(h.LedgerID()))
}

func configuration(h *home.Home) (home.Config, diagnosis) {
	cfg, err := h.LoadConfig()
	if err != nil {
		return home.Config{}, fault("configuration", err.Error(), "correct "+h.ConfigFile())
	}
	return cfg, fine("configuration", h.ConfigFile())
}

// keys wants the seeds to be readable by their owner alone.
func keys(h *home.Home) diagnosis {
	files, err := filepath.Glob(filepath.Join(h.KeysDir(), "*.nk"))
	if err != nil || len(files) == 0 {
		return fault("keys", "none in "+h.KeysDir(), "effectd user add --data "+h.Dir()+" --role ROLE NAME")
	}
	for _, file := range files {
		if open, err := openToOthers(file); err != nil {
			return fault("keys", err.Error(), "make it readable for the user that runs effectd")
		} else if open {
			return fault("keys", file+" can be read by others", "chmod 600 "+file+"; if somebody may have read it, make a new key")
		}
		if _, err := home.PublicKeyOf(file); err != nil {
			return fault("keys", err.Error(), "restore it from a backup, or remove the user and add it again")
		}
	}
	return fine("keys", count(len(files), "key", "keys")+", readable by the owner alone")
}

// store wants the streams and the anchor to be there; whether they agree is for
// verify to say.
func (c *doctorCmd) store(h *home.Home) diagnosis {
	if _, err := os.Stat(filepath.Join(h.NATSDir(), "jetstream")); err != nil && !h.Elsewhere() {
		return fault("store", "the streams are missing: "+h.NATSDir(), "restore them from a backup; they are never made again")
	}
	dir := c.Anchor
	if dir == "" {
		dir = h.AnchorDir()
	}
	mark, err := anchor.Read(vfs.Default, dir)
	if err != nil {
		return fault("store", err.Error()+": "+dir, "restore it from a backup; without it a shortened log is not noticed")
	}
	return fine("store", fmt.Sprintf("the anchor has seen entry %d; effectd verify compares the log with it", mark.Seq))
}

func openToOthers(file string) (bool, error) {
	info, err := os.Stat(file)
	if err != nil {
		return false, err
	}
	return info.Mode().Perm()&(fs.ModePerm&^0o700) != 0, nil
}

func users(h *home.Home) diagnosis {
	all, err := h.Users()
	switch {
	case err != nil:
		return fault("users", err.Error(), "correct "+h.UsersFile())
	case len(all) == 0:
		return fault("users", "nobody may connect", "effectd user add --data "+h.Dir()+" --role ROLE NAME")
	}
	return fine("users", count(len(all), "principal", "principals"))
}

// disk compares the free space with the reserve below which nothing is written.
func disk(h *home.Home, cfg home.Config) diagnosis {
	var s unix.Statfs_t
	if err := unix.Statfs(h.Dir(), &s); err != nil {
		return fault("disk", err.Error(), "")
	}
	free := int64(s.Bavail) * s.Bsize
	says := size(free) + " free"
	switch reserve := int64(cfg.DiskReserve); {
	case free < reserve:
		return fault("disk", says+", below the reserve of "+size(reserve)+": no new effect is taken", "make room, or lower disk_reserve in "+h.ConfigFile())
	case free < 4*reserve:
		return warning("disk", says+"; below "+size(reserve)+" no new effect is taken", "make room")
	}
	return fine("disk", says)
}

// operations compiles every contract, and names the files that are none.
func operations(h *home.Home) ([]*operation.Contract, []diagnosis) {
	contracts, err := embedded.LoadContracts(h)
	d := fine("operations", count(len(contracts), "contract compiles", "contracts compile"))
	switch {
	case err != nil:
		d = fault("operations", strings.ReplaceAll(err.Error(), "\n", "; "), "correct the file")
	case len(contracts) == 0:
		d = warning("operations", "none in "+h.OperationsDir(), "nothing can be asked for until there is one")
	}
	all := []diagnosis{d}
	if _, others, err := h.OperationFiles(); err == nil && len(others) > 0 {
		all = append(all, warning("operations", "not read: "+strings.Join(others, ", "), "contracts end in .yaml or .yml; move other files away"))
	}
	return contracts, all
}

// owner parses the policy. It may name operations of earlier files, so unknown
// ones are no fault here.
func owner(h *home.Home) diagnosis {
	text, err := os.ReadFile(h.PolicyFile())
	if err != nil {
		return fault("policy", err.Error(), "without a policy nothing is allowed")
	}
	if _, err := policy.Parse(text, nil); err != nil {
		return fault("policy", strings.ReplaceAll(err.Error(), "\n", "; "), "correct "+h.PolicyFile()+": effectd policy check")
	}
	return fine("policy", h.PolicyFile())
}

// secretsOf looks for what the contracts read when they send.
func secretsOf(h *home.Home, contracts []*operation.Contract) []diagnosis {
	var out []diagnosis
	for _, c := range contracts {
		for _, name := range c.Secrets {
			out = append(out, secret(h, c.Name, name))
		}
	}
	return out
}

func secret(h *home.Home, op events.OperationName, name string) diagnosis {
	about := fmt.Sprintf("%s of %s", name, op)
	file := filepath.Join(h.SecretsDir(), name)
	if open, err := openToOthers(file); err == nil && open {
		return fault("secret", about+": "+file+" can be read by others", "chmod 600 "+file)
	} else if err == nil {
		return fine("secret", about+": in a file")
	}
	if os.Getenv(name) != "" {
		return fine("secret", about+": in this environment")
	}
	return warning("secret", about+" is not there: its effects end as no_effect, unsendable", "write it to "+file+", or set it in the node's environment")
}

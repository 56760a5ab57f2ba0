package main

import (
	"time"

	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/embedded/home"
)

// renewal is how long before its end a certificate is worth a warning.
const renewal = 14 * 24 * time.Hour

// encryption looks at the certificate, or for users who connect without one.
func encryption(h *home.Home, t home.TLSConfig, now time.Time) []diagnosis {
	if t.Cert == "" {
		node, err := runningOn(h)
		if err == nil && !node.External && embedded.Exposed(node.NATSURL) {
			return []diagnosis{warning("tls", "the node listens on "+node.NATSURL+" without TLS: what users of other machines send can be read and changed",
				"set tls in "+h.ConfigFile()+" and start the node again")}
		}
		return nil
	}
	if open, err := openToOthers(t.Key); err == nil && open {
		return []diagnosis{fault("tls", t.Key+" can be read by others", "chmod 600 "+t.Key+"; if somebody may have read it, make a new key")}
	}
	c, err := t.LoadCertificate()
	if err != nil {
		return []diagnosis{fault("tls", err.Error(), "correct tls in "+h.ConfigFile())}
	}
	says := "the certificate is for " + c.Name + ", until " + c.NotAfter.UTC().Format(time.RFC3339)
	const renew = "renew it, then: effectd policy apply"
	switch left := c.NotAfter.Sub(now); {
	case left <= 0:
		return []diagnosis{fault("tls", says+": it has expired", renew)}
	case left < renewal:
		return []diagnosis{warning("tls", says, renew)}
	}
	return []diagnosis{fine("tls", says)}
}

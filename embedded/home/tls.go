package home

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"
)

// TLSConfig names PEM files, relative to the configuration directory.
type TLSConfig struct {
	Cert string `yaml:"cert"` // of the embedded server, with its chain; empty: no TLS
	Key  string `yaml:"key"`
	// CA is what a node trusts of an external server; default: what the system trusts.
	CA string `yaml:"ca"`
}

// Certificate is a server certificate and the name it is known by.
type Certificate struct {
	tls.Certificate
	Name     string // a name or address that the certificate is for
	NotAfter time.Time
}

// LoadCertificate reads certificate and key.
func (c TLSConfig) LoadCertificate() (*Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	out := &Certificate{Certificate: pair, NotAfter: pair.Leaf.NotAfter}
	switch leaf := pair.Leaf; {
	case len(leaf.DNSNames) > 0:
		out.Name = leaf.DNSNames[0]
	case len(leaf.IPAddresses) > 0:
		out.Name = leaf.IPAddresses[0].String()
	default:
		return nil, fmt.Errorf("tls: %s is for no name and no address", c.Cert)
	}
	return out, nil
}

// PEM is the certificate without its key.
func (c *Certificate) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Leaf.Raw}))
}

// Trust is how to connect to a server whose certificate is among some in PEM, or
// leads to one, and is for name; empty: the host of the URL.
func Trust(certificates []byte, name string) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(certificates) {
		return nil, errors.New("tls: no certificate to trust")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: name}, nil
}

// TrustFile is [Trust] of a file, for the host of the URL.
func TrustFile(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	trust, err := Trust(text, "")
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, file)
	}
	return trust, nil
}

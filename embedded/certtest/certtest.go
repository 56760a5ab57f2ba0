// Package certtest makes certificate authorities for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs server certificates. File holds its own.
type Authority struct {
	File string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority and writes its certificate to a directory of the test.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(t.TempDir(), "ca.pem"), key: newKey(t)}
	a.cert = &x509.Certificate{SerialNumber: serial(t), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	text, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, a.File, "CERTIFICATE", text)
	return a
}

// Issue writes server.pem and server.key to dir: a certificate for the name and
// for 127.0.0.1, until an instant.
func (a *Authority) Issue(t testing.TB, dir, name string, until time.Time) {
	t.Helper()
	key := newKey(t)
	text, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: serial(t), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "server.pem"), "CERTIFICATE", text)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "server.key"), "PRIVATE KEY", secret)
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func write(t testing.TB, file, kind string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		t.Fatal(err)
	}
}

package embedded

import (
	"crypto/tls"
	"net"
	"net/url"
	"sync/atomic"

	"github.com/effectd/effectd/embedded/home"
)

// listener is the certificate of the embedded server. A nil *listener has none.
type listener struct {
	now atomic.Pointer[home.Certificate]
}

func listenerOf(t home.TLSConfig) (*listener, error) {
	if t.Cert == "" {
		return nil, nil
	}
	l := &listener{}
	return l, l.load(t)
}

// load reads the certificate again; one that cannot be read changes nothing.
func (l *listener) load(t home.TLSConfig) error {
	if l == nil {
		return nil
	}
	c, err := t.LoadCertificate()
	if err == nil {
		l.now.Store(c)
	}
	return err
}

// config serves every new connection with the certificate of that moment.
func (l *listener) config() *tls.Config {
	if l == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return &l.now.Load().Certificate, nil
	}}
}

// Exposed reports whether users of other machines can connect to a URL without
// TLS: what they ask and are answered can be read and changed on the way.
func Exposed(natsURL string) bool {
	u, err := url.Parse(natsURL)
	if err != nil || u.Scheme == "tls" || u.Hostname() == "localhost" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip == nil || !ip.IsLoopback()
}

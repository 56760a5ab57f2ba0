package home

import (
	"fmt"

	"github.com/nats-io/nkeys"

	"github.com/effectd/effectd/embedded/natsserver"
)

// ServerConfig is the configuration of an external server for this ledger: its
// users, effectd itself with the seed in keyFile, and the certificate. An empty store is left for
// the owner to say.
func (h *Home) ServerConfig(keyFile, store string) (string, error) {
	users, err := h.Users()
	if err != nil {
		return "", err
	}
	keys, err := LoadServiceKeys(keyFile)
	if err != nil {
		return "", err
	}
	public, err := natsserver.ServicePublicKeys(keys)
	if err != nil {
		return "", err
	}
	c, err := h.LoadConfig()
	if err != nil {
		return "", err
	}
	return natsserver.Config(natsserver.Layout{Users: users, Services: public, StoreDir: store, Certificate: c.TLS.Cert, Key: c.TLS.Key})
}

// LoadServiceKeys derives the keys of effectd itself from the seed in a file.
func LoadServiceKeys(file string) (map[natsserver.Service]nkeys.KeyPair, error) {
	key, err := LoadKey(file)
	if err != nil {
		return nil, err
	}
	defer key.Wipe() // also what Seed returns
	seed, err := key.Seed()
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	return natsserver.ServiceKeys(seed)
}

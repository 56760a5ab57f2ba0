package home

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"

	"github.com/effectd/effectd/events"
)

const keySuffix = ".nk"

// LoadKey reads the seed of a user nkey from a file. The caller wipes the pair
// when done.
func LoadKey(file string) (nkeys.KeyPair, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	defer clear(text)
	key, err := nkeys.ParseDecoratedNKey(text)
	if err != nil {
		return nil, fmt.Errorf("key %s: want the seed of a user nkey", file)
	}
	pub, err := key.PublicKey()
	if err != nil || !nkeys.IsValidPublicUserKey(pub) {
		key.Wipe()
		return nil, fmt.Errorf("key %s: want the seed of a user nkey", file)
	}
	return key, nil
}

// PublicKeyOf reads the public half of the seed in a file.
func PublicKeyOf(file string) (string, error) {
	key, err := LoadKey(file)
	if err != nil {
		return "", err
	}
	defer key.Wipe()
	return key.PublicKey()
}

// KeyFile is where the seed of a user lies: keys/NAME.nk, or keys/TENANT.NAME.nk
// where another tenant has that name already.
func (h *Home) KeyFile(t events.Tenant, p events.Principal) (string, error) {
	users, err := h.Users()
	if err != nil {
		return "", err
	}
	for _, u := range users {
		if u.Tenant != t || u.Principal != p {
			continue
		}
		for _, file := range h.keyFiles(t, p) {
			if pub, err := PublicKeyOf(file); err == nil && pub == u.PublicKey {
				return file, nil
			}
		}
		return "", fmt.Errorf("no key file in %s fits the public key of %s/%s", h.KeysDir(), t, p)
	}
	return "", fmt.Errorf("%s/%s: %w", t, p, ErrUnknownUser)
}

func (h *Home) keyFiles(t events.Tenant, p events.Principal) []string {
	return []string{
		filepath.Join(h.KeysDir(), string(p)+keySuffix),
		filepath.Join(h.KeysDir(), string(t)+"."+string(p)+keySuffix),
	}
}

// LedgerKeyFile is the key of effectd itself on an external server. It is made
// when first asked for; the embedded server needs none.
func (h *Home) LedgerKeyFile() (string, error) {
	file := filepath.Join(h.KeysDir(), string(events.SystemPrincipal)+keySuffix)
	unlock, err := h.lockKeys()
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(file) {
		return file, nil
	}
	seed, _, err := newSeed()
	if err != nil {
		return "", err
	}
	defer clear(seed)
	return file, writeSeed(file, seed)
}

// newSeed makes a user nkey; the caller clears the seed.
func newSeed() (seed []byte, publicKey string, err error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, "", err
	}
	defer key.Wipe() // also what Seed returns
	own, err := key.Seed()
	if err != nil {
		return nil, "", err
	}
	publicKey, err = key.PublicKey()
	return bytes.Clone(own), publicKey, err
}

// writeSeed writes a seed for its owner alone (H5).
func writeSeed(file string, seed []byte) error {
	text := append(append(make([]byte, 0, len(seed)+1), seed...), '\n')
	defer clear(text)
	return writeFile(file, text, secretMode)
}

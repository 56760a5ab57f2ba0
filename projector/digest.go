package projector

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/effectd/effectd/events"
)

// Digest is the SHA-256 over every row, keys in order, keys and values behind
// their lengths (8 bytes, big-endian): equal logs up to the position, equal
// digests (P2). It reads the whole store.
func (p *Projection) Digest() (events.Digest, error) {
	sum := sha256.New()
	var length [8]byte
	add := func(b []byte) {
		binary.BigEndian.PutUint64(length[:], uint64(len(b)))
		sum.Write(length[:])
		sum.Write(b)
	}
	err := p.snapshot(func(s snapshot) error {
		return scan(s.rows, nil, func(key, value []byte) error {
			add(key)
			add(value)
			return nil
		})
	})
	if err != nil {
		return "", err
	}
	return events.Digest(hex.EncodeToString(sum.Sum(nil))), nil
}

package policy

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/nats-io/nkeys"
)

// Signed is a statement as requests carry it.
type Signed struct {
	Statement string // the canonical text
	Signature string // of the text: Ed25519, base64
	PublicKey string // nkey of a user, "U…"
}

// Sign signs a text with the seed of a user's nkey.
func Sign(seed []byte, text string) (Signed, error) {
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return Signed{}, fmt.Errorf("sign: %w", err)
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	if err != nil {
		return Signed{}, fmt.Errorf("sign: %w", err)
	}
	if !nkeys.IsValidPublicUserKey(public) {
		return Signed{}, errors.New("sign: not the key of a user")
	}
	signature, err := pair.Sign([]byte(text))
	if err != nil {
		return Signed{}, fmt.Errorf("sign: %w", err)
	}
	return Signed{Statement: text, Signature: base64.StdEncoding.EncodeToString(signature), PublicKey: public}, nil
}

// Verify answers with the statement that the holder of publicKey signed, if it
// is the expected one (see [Statement.Check]). The error names what is wrong.
func Verify(s Signed, publicKey string, want Statement) (Statement, error) {
	if err := s.verify(publicKey); err != nil {
		return Statement{}, err
	}
	got, err := ParseStatement(s.Statement)
	if err == nil {
		err = got.Check(want)
	}
	if err != nil {
		return Statement{}, err
	}
	return got, nil
}

// VerifySettlement is [Verify] for the statement of an operator.
func VerifySettlement(s Signed, publicKey string, want Settlement) (Settlement, error) {
	if err := s.verify(publicKey); err != nil {
		return Settlement{}, err
	}
	got, err := ParseSettlement(s.Statement)
	if err == nil {
		err = got.Check(want)
	}
	if err != nil {
		return Settlement{}, err
	}
	return got, nil
}

// verify checks the signature by the registered key. Key and signature have one
// spelling each: what the log keeps is what was checked.
func (s Signed) verify(publicKey string) error {
	if s.PublicKey != publicKey || !nkeys.IsValidPublicUserKey(publicKey) {
		return errors.New("public_key: not the registered key of the signer")
	}
	pair, err := nkeys.FromPublicKey(publicKey)
	if err != nil {
		return errors.New("public_key: malformed")
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(s.Signature)
	if err != nil || base64.StdEncoding.EncodeToString(signature) != s.Signature {
		return errors.New("signature: want standard base64")
	}
	if len(s.Statement) > maxStatement || pair.Verify([]byte(s.Statement), signature) != nil {
		return errors.New("signature: does not match the statement")
	}
	return nil
}

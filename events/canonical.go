package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is the deepest nesting of arrays and objects that input may have.
const MaxDepth = 64

// ErrInvalidJSON is what errors.Is finds in every error of [Canonicalize].
var ErrInvalidJSON = errors.New("invalid JSON")

// InvalidJSON is why input is refused, and where. It carries member names of
// the input, never a value.
type InvalidJSON struct {
	What string           // such as "duplicate name"
	At   jsontext.Pointer // RFC 6901; empty at the top, or where it is not known
}

func (e *InvalidJSON) Error() string {
	if e.At == "" {
		return "invalid JSON: " + e.What
	}
	return "invalid JSON: " + e.What + " at " + string(e.At)
}

// Is makes every InvalidJSON an [ErrInvalidJSON].
func (e *InvalidJSON) Is(target error) bool { return target == ErrInvalidJSON }

// canonicalText makes the encoder write RFC 8785: sorted members, shortest
// strings, numbers as ECMAScript writes doubles.
var canonicalText = json.JoinOptions(
	jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawInts(true), jsontext.CanonicalizeRawFloats(true))

// Canonicalize checks untrusted JSON and returns it in the canonical form of
// RFC 8785 in new memory. It refuses with [*InvalidJSON] duplicate names,
// invalid UTF-8, lone surrogates, numbers that are not finite or beyond
// ±(2^53−1), nesting deeper than [MaxDepth], and anything after the value.
func Canonicalize(raw []byte) (Raw, error) {
	if plain(raw) {
		return bytes.Clone(raw), nil
	}
	if fault, offset := outOfBounds(raw, MaxDepth); fault != "" {
		return nil, locate(raw, fault, offset)
	}
	out, err := jsontext.AppendFormat(nil, raw, canonicalText)
	if err != nil {
		return nil, syntaxFault(err)
	}
	return out, nil
}

// locate finds the member of a fault by its byte offset. A syntax error before
// the fault is reported instead of it.
func locate(raw []byte, fault string, offset int) error {
	dec := jsontext.NewDecoder(strings.NewReader(string(raw)))
	for dec.InputOffset() <= int64(offset) && dec.StackDepth() <= MaxDepth {
		if _, err := dec.ReadToken(); err != nil {
			return syntaxFault(err)
		}
	}
	if dec.StackDepth() > MaxDepth {
		return &InvalidJSON{What: fault} // the pointer would be as deep
	}
	return &InvalidJSON{What: fault, At: dec.StackPointer()}
}

// syntaxFault says what is wrong and where, without the input itself.
func syntaxFault(err error) error {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return &InvalidJSON{What: "truncated or malformed"}
	}
	f := &InvalidJSON{What: "truncated or malformed", At: syntax.JSONPointer}
	switch text := syntax.Err.Error(); {
	case errors.Is(syntax.Err, jsontext.ErrDuplicateName):
		f.What = "duplicate name"
	case strings.Contains(text, "UTF-8"):
		f.What = "invalid UTF-8"
	case strings.Contains(text, "surrogate"), strings.Contains(text, "escape"):
		f.What = "invalid escape or lone surrogate"
	}
	return f
}

// canonicalValues adds what a Go value needs to be written in canonical form.
// Invalid UTF-8 in a string of ours, such as a service's broken header kept as
// evidence, becomes U+FFFD: it must not stop the writer.
var canonicalValues = json.JoinOptions(canonicalText, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))

// appendCanonical appends the canonical form of a value of ours.
func appendCanonical(dst []byte, v any) ([]byte, error) {
	value := reflect.ValueOf(v)
	if v != nil {
		if encode := encoderOf(value.Type()); encode != nil {
			return encode(dst, value)
		}
	}
	b, err := json.Marshal(v, canonicalValues)
	if err != nil {
		return dst, err
	}
	return jsontext.AppendFormat(dst, b, canonicalText)
}

// scratch holds buffers that encodings are made in.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// encode calls use with the canonical form of a value of ours, which must not be
// kept.
func encode(v any, use func([]byte)) error {
	buffer := scratch.Get().(*[]byte)
	defer scratch.Put(buffer)
	b, err := appendCanonical((*buffer)[:0], v)
	if err != nil {
		return err
	}
	*buffer = b
	use(b)
	return nil
}

func mustEncode(v any, use func([]byte)) {
	if err := encode(v, use); err != nil {
		panic(fmt.Sprintf("events: canonical form of %T: %v", v, err))
	}
}

// CanonicalOf encodes a value of ours in canonical form. It panics on a value
// that JSON cannot hold, which only a defect of the program can produce.
// Integers must be within ±(2^53−1).
func CanonicalOf(v any) (form Raw) {
	mustEncode(v, func(b []byte) { form = bytes.Clone(b) })
	return form
}

// DigestOf is the SHA-256 of the canonical form of a value of ours.
func DigestOf(v any) (digest Digest) {
	mustEncode(v, func(b []byte) { digest = DigestBytes(b) })
	return digest
}

// DigestBytes is the SHA-256 of bytes.
func DigestBytes(b []byte) Digest {
	sum := sha256.Sum256(b)
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return Digest(text[:])
}

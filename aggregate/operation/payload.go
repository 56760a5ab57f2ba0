package operation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/effectd/effectd/events"
)

// Payload is a canonical JSON value, decoded once for schema, expressions and
// policy. It is immutable and may be shared.
type Payload struct {
	raw   events.Raw
	value any // nil, bool, int64, float64, string, []any or map[string]any
}

// ParsePayload decodes JSON that is in canonical form (see [events.Canonicalize]).
// Integers become int64, other numbers float64.
func ParsePayload(raw events.Raw) (Payload, error) {
	v, err := decode(raw)
	if err != nil {
		return Payload{}, fmt.Errorf("payload: %w", err)
	}
	return Payload{raw: raw, value: v}, nil
}

// Raw is the canonical JSON that was parsed.
func (p Payload) Raw() events.Raw { return p.raw }

func decode(raw []byte) (any, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	v, err := decodeValue(dec, number)
	if err != nil || dec.InputOffset() != int64(len(raw)) {
		return nil, events.ErrInvalidJSON
	}
	return v, nil
}

// numeral reads a JSON number.
type numeral func(string) (any, error)

func decodeValue(dec *jsontext.Decoder, n numeral) (any, error) {
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return tok.Bool(), nil
	case '"':
		return tok.String(), nil
	case '0':
		return n(tok.String())
	case '[':
		out := []any{}
		for dec.PeekKind() != ']' {
			v, err := decodeValue(dec, n)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err := dec.ReadToken()
		return out, err
	default:
		return decodeObject(dec, n)
	}
}

func decodeObject(dec *jsontext.Decoder, n numeral) (any, error) {
	out := map[string]any{}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String() // valid until the next read
		v, err := decodeValue(dec, n)
		if err != nil {
			return nil, err
		}
		out[key] = v
	}
	_, err := dec.ReadToken()
	return out, err
}

// number keeps integers exact: in canonical form one has neither point nor exponent.
func number(s string) (any, error) {
	if !strings.ContainsAny(s, ".eE") {
		return strconv.ParseInt(s, 10, 64)
	}
	return strconv.ParseFloat(s, 64)
}

// anyNumber reads what an answer may hold beyond that: a double, infinite beyond
// all doubles.
func anyNumber(s string) (any, error) {
	if v, err := number(s); err == nil {
		return v, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if errors.Is(err, strconv.ErrRange) {
		err = nil
	}
	return f, err
}

// lenient decodes the answer of a service, which owes us no canonical form: one
// number out of range must not lose what the rest of it proves. Nil if it is not
// JSON.
func lenient(body []byte) any {
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowInvalidUTF8(true))
	v, err := decodeValue(dec, anyNumber)
	if err != nil {
		return nil
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil
	}
	return v
}

package wire

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"github.com/effectd/effectd/events"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads the body of a request, strictly: JSON that SPEC 3 refuses is
// invalid_payload; an unknown member, a wrong type or a malformed field is
// invalid_request, and the field is named. An empty body is {}; null is an
// absent member. Raw members of the result are in canonical form.
func Decode[T any](raw []byte) (T, *Error) {
	var req T
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}")
	}
	body, err := events.Canonicalize(raw)
	if err != nil {
		return req, invalidJSON(err)
	}
	if body[0] != '{' {
		return req, Errorf(InvalidRequest, "want a JSON object")
	}
	if err := json.Unmarshal(body, &req, strict); err != nil {
		return req, invalidField(err)
	}
	if refusal := refuseSentEmpty(body); refusal != nil {
		return req, refusal
	}
	if r, ok := any(&req).(request); ok {
		return req, r.check()
	}
	return req, nil
}

// request is a request that completes and checks itself.
type request interface{ check() *Error }

// strict refuses unknown members; duplicate ones are refused already.
var strict = json.JoinOptions(json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(true))

func invalidJSON(err error) *Error {
	var fault *events.InvalidJSON
	if errors.As(err, &fault) {
		return FieldError(InvalidPayload, fieldOf(fault.At), fault.What)
	}
	return Errorf(InvalidPayload, "invalid JSON")
}

func invalidField(err error) *Error {
	var fault *json.SemanticError
	switch {
	case !errors.As(err, &fault):
		return Errorf(InvalidRequest, "malformed request")
	case errors.Is(err, json.ErrUnknownName):
		return FieldError(InvalidRequest, fieldOf(fault.JSONPointer), "unknown field")
	}
	return FieldError(InvalidRequest, fieldOf(fault.JSONPointer), "want "+kindOf(fault.GoType))
}

func kindOf(t reflect.Type) string {
	if t == nil {
		return "another type"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "an integer"
	case reflect.Slice:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "another type"
}

// maxField bounds what an error repeats of a request's own member names.
const maxField = 128

// fieldOf writes a JSON pointer as the path of a field: "max_cost.usd_cents".
func fieldOf(p jsontext.Pointer) string {
	var path strings.Builder
	for name := range p.Tokens() {
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		path.WriteString(name)
		if path.Len() > maxField {
			return strings.ToValidUTF8(path.String()[:maxField], "") + "…"
		}
	}
	return path.String()
}

// refuseSentEmpty refuses members that are sent with the value that stands for
// "absent" in the Go type and would be digested as absent.
func refuseSentEmpty(body []byte) *Error {
	for _, m := range [...]struct{ text, field string }{{`"expires_at":""`, "expires_at"}, {`"version":0`, "version"}} {
		if bytes.Contains(body, []byte(m.text)) && hasMember(body, m.text) {
			return FieldError(InvalidRequest, m.field, "it is sent but empty")
		}
	}
	return nil
}

// hasMember reports whether the canonical object body has exactly this member
// at its top level.
func hasMember(body []byte, member string) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	_, _ = dec.ReadToken()
	for dec.PeekKind() == '"' {
		name, _ := dec.ReadValue()
		text := string(name) + ":"
		value, err := dec.ReadValue()
		if err != nil {
			return false
		}
		if text+string(value) == member {
			return true
		}
	}
	return false
}

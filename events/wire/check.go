package wire

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/effectd/effectd/events"
)

// MaxMS is the longest duration of a request, in milliseconds: what a
// time.Duration holds.
const MaxMS = int64(math.MaxInt64 / time.Millisecond)

// CheckID wants an identifier of 1 to [events.MaxID] bytes.
func CheckID[S ~string](field string, id S) *Error {
	if id == "" {
		return FieldError(InvalidRequest, field, "it is required")
	}
	return CheckOptionalID(field, id)
}

// CheckOptionalID wants an identifier of at most [events.MaxID] bytes; empty is absent.
func CheckOptionalID[S ~string](field string, id S) *Error {
	if len(id) > events.MaxID {
		return FieldError(InvalidRequest, field, fmt.Sprintf("it is longer than %d bytes", events.MaxID))
	}
	if strings.ContainsFunc(string(id), unicode.IsControl) {
		return FieldError(InvalidRequest, field, "it has a control character")
	}
	return nil
}

// CheckToken wants one subject token (see [events.ValidToken]).
func CheckToken[S ~string](field string, token S) *Error {
	switch {
	case token == "":
		return FieldError(InvalidRequest, field, "it is required")
	case !events.ValidToken(string(token)):
		return FieldError(InvalidRequest, field, "want 1 to 64 characters of a-z 0-9 - _")
	}
	return nil
}

// CheckOptionalToken is [CheckToken] for a field that may be absent.
func CheckOptionalToken[S ~string](field string, token S) *Error {
	if token == "" {
		return nil
	}
	return CheckToken(field, token)
}

// CheckActor wants "<tenant>/<principal>".
func CheckActor(field string, a events.Actor) *Error {
	t, p, ok := strings.Cut(string(a), "/")
	if !ok || !events.ValidToken(t) || !events.ValidToken(p) {
		return FieldError(InvalidRequest, field, "want TENANT/PRINCIPAL")
	}
	return nil
}

// CheckAmounts wants unit tokens and integers in 0 to 2^53−1.
func CheckAmounts(field string, amounts events.Amounts) *Error {
	for unit, n := range amounts {
		if refusal := CheckToken(field, unit); refusal != nil {
			return FieldError(InvalidRequest, field, "a unit is not 1 to 64 characters of a-z 0-9 - _")
		}
		if refusal := CheckAmount(field+"."+string(unit), n); refusal != nil {
			return refusal
		}
	}
	return nil
}

// CheckAmount wants an integer in 0 to 2^53−1.
func CheckAmount(field string, n int64) *Error {
	if n < 0 || n > events.MaxAmount {
		return FieldError(InvalidRequest, field, "want an integer in 0 to 2^53−1")
	}
	return nil
}

// CheckMS wants a duration in milliseconds; 0 is absent.
func CheckMS(field string, ms int64) *Error {
	if ms < 0 || ms > MaxMS {
		return FieldError(InvalidRequest, field, fmt.Sprintf("want milliseconds in 0 to %d", MaxMS))
	}
	return nil
}

// CheckTime wants an RFC 3339 time.
func CheckTime(field, text string) *Error {
	if text == "" {
		return FieldError(InvalidRequest, field, "it is required")
	}
	if _, err := events.ParseInstant(text); err != nil {
		return FieldError(InvalidRequest, field, err.Error())
	}
	return nil
}

// CheckOptionalTime is [CheckTime] for a field that may be absent.
func CheckOptionalTime(field, text string) *Error {
	if text == "" {
		return nil
	}
	return CheckTime(field, text)
}

// CheckPosition wants a position of the log, or none.
func CheckPosition(field, text string) *Error {
	if text == "" {
		return nil
	}
	if _, err := events.ParsePosition(text); err != nil {
		return FieldError(InvalidRequest, field, "want a position such as 1042.0")
	}
	return nil
}

// CheckOneOf wants one of the given words.
func CheckOneOf[S ~string](field string, word S, words ...S) *Error {
	list := make([]string, len(words))
	for i, w := range words {
		if word == w {
			return nil
		}
		list[i] = string(w)
	}
	return FieldError(InvalidRequest, field, "want one of "+strings.Join(list, ", "))
}

func firstOf(refusals ...*Error) *Error {
	for _, r := range refusals {
		if r != nil {
			return r
		}
	}
	return nil
}

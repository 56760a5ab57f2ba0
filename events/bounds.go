package events

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

// outOfBounds finds the first nesting deeper than depth, or number that a
// double cannot hold exactly enough to be digested. It returns "" if there is
// none. It only counts: syntax is judged by the parser, and what it says about
// malformed text may be wrong as long as the parser refuses that text.
func outOfBounds(raw []byte, depth int) (fault string, offset int) {
	for i, level := 0, 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			i += stringLen(raw[i:])
		case c == '{' || c == '[':
			if level++; level > depth {
				return "nested deeper than " + strconv.Itoa(depth), i
			}
			i++
		case c == '}' || c == ']':
			level--
			i++
		case c == '-' || c >= '0' && c <= '9':
			n, exponent := numberLen(raw[i:])
			// Fifteen characters without an exponent are always in bounds.
			if n > 15 || exponent {
				if fault := numberFault(string(raw[i : i+n])); fault != "" {
					return fault, i
				}
			}
			i += n
		default:
			i++
		}
	}
	return "", 0
}

// stringLen is the length of the string that b starts with, quotes included.
func stringLen(b []byte) int {
	for i := 1; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n + 1
		backslashes := 0
		for j := i - 2; j > 0 && b[j] == '\\'; j-- {
			backslashes++
		}
		if backslashes%2 == 0 {
			return i
		}
	}
}

// numberLen is the length of the number that b starts with.
func numberLen(b []byte) (n int, exponent bool) {
	for n < len(b) {
		switch c := b[n]; {
		case c == 'e' || c == 'E':
			exponent = true
		case c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.':
		default:
			return n, exponent
		}
		n++
	}
	return n, exponent
}

func numberFault(s string) string {
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return "number that is not finite"
	case math.Abs(f) > float64(MaxAmount): // every double of this size is an integer
		return "integer beyond ±(2^53−1)"
	}
	return ""
}

package events

import "bytes"

// plain reports whether b is one JSON value that surely is in canonical form: no
// white space, names and strings of printable ASCII without escapes, integers of
// at most 15 digits. What it does not know it leaves to the library. It costs a
// tenth of formatting the value again, and most values are plain.
func plain(b []byte) bool {
	rest, ok := plainValue(b, MaxDepth)
	return ok && len(rest) == 0
}

func plainValue(b []byte, depth int) (rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	switch c := b[0]; {
	case c == '"':
		_, rest, ok = plainString(b)
		return rest, ok
	case c == '{' && depth > 0:
		return plainObject(b[1:], depth-1)
	case c == '[' && depth > 0:
		return plainArray(b[1:], depth-1)
	case c == '-' || c >= '0' && c <= '9':
		return plainInteger(b)
	}
	for _, word := range []string{"true", "false", "null"} {
		if rest, ok := bytes.CutPrefix(b, []byte(word)); ok {
			return rest, true
		}
	}
	return nil, false
}

func plainObject(b []byte, depth int) (rest []byte, ok bool) {
	if b, ok := cut(b, '}'); ok {
		return b, true
	}
	for last := []byte(nil); ; {
		name, rest, ok := plainString(b)
		if !ok || last != nil && bytes.Compare(name, last) <= 0 {
			return nil, false
		}
		last = name
		if rest, ok = cut(rest, ':'); !ok {
			return nil, false
		}
		if rest, ok = plainValue(rest, depth); !ok {
			return nil, false
		}
		if b, ok = cut(rest, ','); !ok {
			return cut(rest, '}')
		}
	}
}

func plainArray(b []byte, depth int) (rest []byte, ok bool) {
	if b, ok := cut(b, ']'); ok {
		return b, true
	}
	for {
		rest, ok := plainValue(b, depth)
		if !ok {
			return nil, false
		}
		if b, ok = cut(rest, ','); !ok {
			return cut(rest, ']')
		}
	}
}

func plainString(b []byte) (text, rest []byte, ok bool) {
	if b, ok = cut(b, '"'); !ok {
		return nil, nil, false
	}
	for i, c := range b {
		switch {
		case c == '"':
			return b[:i], b[i+1:], true
		case c < ' ' || c > '~' || c == '\\':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

func plainInteger(b []byte) (rest []byte, ok bool) {
	digits := bytes.TrimPrefix(b, []byte("-"))
	n := 0
	for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
		n++
	}
	zero := n > 0 && digits[0] == '0'
	ok = n > 0 && n <= 15 && (!zero || n == 1 && len(digits) == len(b))
	if n < len(digits) && bytes.IndexByte([]byte(".eE"), digits[n]) >= 0 {
		ok = false
	}
	return digits[n:], ok
}

func cut(b []byte, c byte) (rest []byte, ok bool) {
	if len(b) == 0 || b[0] != c {
		return b, false
	}
	return b[1:], true
}

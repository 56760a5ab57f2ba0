package operation

import (
	"strings"
	"testing"
)

// A text made to exhaust the reader is a fault like any other.
func TestHostileTexts(t *testing.T) {
	const n = maxText / 4
	texts := map[string]string{
		"lists":       strings.Repeat("[", n),
		"mappings":    strings.Repeat("{a: ", n),
		"closed":      "a: " + strings.Repeat("[", n) + strings.Repeat("]", n),
		"blocks":      nestedBlocks(150),
		"dashes":      strings.Repeat("- ", n),
		"keys":        strings.Repeat("? ", n),
		"quotes":      "a: " + strings.Repeat(`"`, n),
		"anchors":     "a: &a [x]\nb: " + strings.Repeat("[*a, ", n/5),
		"parentheses": minimal("cost: {calls: '" + strings.Repeat("(", n/4) + "'}\n"),
		"sums":        minimal("cost: {calls: '" + strings.Repeat("1+", 2000) + "1'}\n"),
		"long":        minimal("cost: {calls: '" + strings.Repeat(" ", maxExpression) + "1'}\n"),
	}
	for name, text := range texts {
		if _, err := Compile("x.yaml", []byte(text)); err == nil {
			t.Errorf("%s: compiled", name)
		}
	}
}

func nestedBlocks(depth int) string {
	var out strings.Builder
	for i := range depth {
		out.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return out.String()
}

package operation

import (
	"testing"

	"github.com/effectd/effectd/events"
)

// BenchmarkPrepare is what prepare asks of a contract.
func BenchmarkPrepare(b *testing.B) {
	c := mustCompile(b, chargeText(b))
	p := mustPayload(b, `{"account":"acct_1","amount":1500}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Validate(p); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Resource(p); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Bound(p); err != nil {
			b.Fatal(err)
		}
		c.Exposed(p)
	}
}

func BenchmarkParsePayload(b *testing.B) {
	raw := events.Raw(`{"account":"acct_1","amount":1500}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParsePayload(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHTTPSend(b *testing.B) {
	c := mustCompile(b, chargeText(b))
	in := input(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.HTTPSend(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	c := mustCompile(b, chargeText(b))
	in, r := input(b), Response{Status: 200, Body: []byte(`{"id":"ch_1","amount":1500}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := c.Classify(r, in); !ok {
			b.Fatal("no match")
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	text := []byte(chargeText(b))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile("charge.yaml", text); err != nil {
			b.Fatal(err)
		}
	}
}

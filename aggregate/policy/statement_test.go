package policy

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/effectd/effectd/events"
)

var (
	issuedAt = instant("2026-01-01T00:00:00Z")
	expires  = instant("2026-01-01T00:10:00Z")
)

func instant(s string) events.Instant {
	at, err := events.ParseInstant(s)
	if err != nil {
		panic(err)
	}
	return at
}

func expected() Statement {
	return Statement{
		V: 1, LedgerID: "01L", EffectID: "01E", BindingDigest: events.Digest(strings.Repeat("0a", 32)), Operation: "charge", Resource: "account/acct_1",
		MaxCost: events.Amounts{"usd_cents": 1500}, ExpiresAt: expires, Decision: DecisionApprove, Approver: "main/approver", IssuedAt: issuedAt,
	}
}

// key is the key of a user, always the same for a letter.
func key(t testing.TB, letter byte) (seed []byte, public string) {
	t.Helper()
	pair, err := nkeys.CreatePairWithRand(nkeys.PrefixByteUser, strings.NewReader(strings.Repeat(string(letter), 32)))
	if err != nil {
		t.Fatal(err)
	}
	seed, err = pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	public, err = pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return seed, public
}

func signed(t testing.TB, letter byte, text string) Signed {
	t.Helper()
	seed, _ := key(t, letter)
	s, err := Sign(seed, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVerify(t *testing.T) {
	_, public := key(t, 'a')
	want := expected()
	s := signed(t, 'a', want.Text())
	if s.PublicKey != public {
		t.Fatalf("signed with %s", s.PublicKey)
	}
	want.IssuedAt = expires // when it is checked
	got, err := Verify(s, public, want)
	if err != nil || got.SHA256() != expected().SHA256() || got.IssuedAt != issuedAt {
		t.Errorf("got %+v, %v", got, err)
	}
	const text = `{"approver":"main/approver","binding_digest":"0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a","decision":"approve",` +
		`"effect_id":"01E","expires_at":"2026-01-01T00:10:00Z","issued_at":"2026-01-01T00:00:00Z","ledger_id":"01L","max_cost":{"usd_cents":1500},` +
		`"operation":"charge","resource":"account/acct_1","v":1}`
	if expected().Text() != text {
		t.Errorf("text %s", expected().Text())
	}
	free := expected()
	free.MaxCost = nil
	if got, err := Verify(signed(t, 'a', free.Text()), public, free); err != nil || len(got.MaxCost) != 0 {
		t.Errorf("without cost: %+v, %v", got, err)
	}
}

// P5: a statement about anything else, by field, is no approval.
func TestForgedFields(t *testing.T) {
	_, public := key(t, 'a')
	forged := map[string]func(*Statement){
		"v":              func(s *Statement) { s.V = 2 },
		"ledger_id":      func(s *Statement) { s.LedgerID = "01M" },
		"effect_id":      func(s *Statement) { s.EffectID = "01F" },
		"binding_digest": func(s *Statement) { s.BindingDigest = events.ZeroDigest },
		"operation":      func(s *Statement) { s.Operation = "refund" },
		"resource":       func(s *Statement) { s.Resource = "account/acct_2" },
		"max_cost":       func(s *Statement) { s.MaxCost = events.Amounts{"usd_cents": 1501} },
		"expires_at":     func(s *Statement) { s.ExpiresAt++ },
		"decision":       func(s *Statement) { s.Decision = DecisionDeny },
		"approver":       func(s *Statement) { s.Approver = "main/other" },
		"issued_at":      func(s *Statement) { s.IssuedAt = issuedAt + 2*tolerance },
	}
	for field, forge := range forged {
		s := expected()
		forge(&s)
		_, err := Verify(signed(t, 'a', s.Text()), public, expected())
		if err == nil || err.Error() != "not the statement about this effect: "+field {
			t.Errorf("%s: %v", field, err)
		}
	}
	more := []func(*Statement){
		func(s *Statement) { s.MaxCost = nil },
		func(s *Statement) { s.MaxCost = events.Amounts{"usd_cents": 1500, "calls": 0} },
		func(s *Statement) { s.MaxCost = events.Amounts{"calls": 1500} },
		func(s *Statement) { s.IssuedAt = 0 },
	}
	for i, forge := range more {
		s := expected()
		forge(&s)
		if _, err := Verify(signed(t, 'a', s.Text()), public, expected()); err == nil {
			t.Errorf("forgery %d is accepted", i)
		}
	}
	odd := expected()
	odd.Decision = "maybe"
	if _, err := Verify(signed(t, 'a', odd.Text()), public, odd); err == nil {
		t.Error("a decision that is none is accepted")
	}
}

// P5: one statement has one text.
func TestForgedTexts(t *testing.T) {
	_, public := key(t, 'a')
	text := expected().Text()
	for name, forged := range map[string]string{
		"space":           strings.Replace(text, `:`, `: `, 1),
		"newline":         text + "\n",
		"two":             text + text,
		"order":           `{"v":1,` + strings.Replace(text[1:], `,"v":1`, "", 1),
		"unknown member":  strings.Replace(text, `,"v":1`, `,"v":1,"w":1`, 1),
		"no member":       strings.Replace(text, `"decision":"approve",`, "", 1),
		"duplicate":       strings.Replace(text, `"v":1`, `"v":1,"v":1`, 1),
		"case":            strings.Replace(text, `"decision"`, `"Decision"`, 1),
		"escape":          strings.Replace(text, `"approve"`, `"\u0061pprove"`, 1),
		"number":          strings.Replace(text, `"v":1`, `"v":1.0`, 1),
		"text for number": strings.Replace(text, `1500`, `"1500"`, 1),
		"null":            strings.Replace(text, `{"usd_cents":1500}`, `null`, 1),
		"time":            strings.Replace(text, `00:10:00Z`, `00:10:00.0Z`, 1),
		"zone":            strings.Replace(text, `T00:10:00Z`, `T01:10:00+01:00`, 1),
		"empty":           "",
		"list":            "[" + text + "]",
		"huge":            `{"` + strings.Repeat("a", maxStatement) + `":1}`,
	} {
		if _, err := Verify(signed(t, 'a', forged), public, expected()); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// P5: a signature by the registered key, over these bytes, spelled one way.
func TestForgedSignatures(t *testing.T) {
	_, public := key(t, 'a')
	_, other := key(t, 'b')
	good := signed(t, 'a', expected().Text())
	raw, _ := base64.StdEncoding.DecodeString(good.Signature)
	flipped := append([]byte{}, raw...)
	flipped[0] ^= 1
	for name, s := range map[string]Signed{
		"other key":         signed(t, 'b', expected().Text()),
		"other key claimed": {good.Statement, good.Signature, other},
		"other statement":   {strings.Replace(good.Statement, "acct_1", "acct_2", 1), good.Signature, public},
		"flipped":           {good.Statement, base64.StdEncoding.EncodeToString(flipped), public},
		"short":             {good.Statement, base64.StdEncoding.EncodeToString(raw[:63]), public},
		"none":              {good.Statement, "", public},
		"url base64":        {good.Statement, base64.URLEncoding.EncodeToString(raw), public},
		"unpadded":          {good.Statement, strings.TrimRight(good.Signature, "="), public},
		"line break":        {good.Statement, good.Signature[:10] + "\n" + good.Signature[10:], public},
		"hex":               {good.Statement, "00", public},
		"no key":            {good.Statement, good.Signature, ""},
		"digest echoed":     {good.Statement, string(expected().SHA256()), public},
	} {
		if name == "url base64" && s.Signature == good.Signature {
			t.Fatal("choose a signature that has + or / in it")
		}
		if _, err := Verify(s, public, expected()); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for _, registered := range []string{"", other, "UABC", strings.ToLower(public)} {
		s := good
		s.PublicKey = registered
		if _, err := Verify(s, registered, expected()); err == nil {
			t.Errorf("accepted for the registered key %q", registered)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	seed, _ := account.Seed()
	for _, seed := range [][]byte{nil, []byte("SU"), seed} {
		if _, err := Sign(seed, "x"); err == nil {
			t.Errorf("signed with %.2s…", seed)
		}
	}
}

func TestSettlement(t *testing.T) {
	_, public := key(t, 'o')
	want := Settlement{V: 1, LedgerID: "01L", EffectID: "01E", BindingDigest: events.Digest(strings.Repeat("0a", 32)), Outcome: events.OutcomeNoEffect,
		EvidenceSHA256: events.Digest(strings.Repeat("0b", 32)), Operator: "main/operator", IssuedAt: issuedAt}
	if _, err := VerifySettlement(signed(t, 'o', want.Text()), public, want); err != nil {
		t.Fatal(err)
	}
	for field, forge := range map[string]func(*Settlement){
		"v":               func(s *Settlement) { s.V = 2 },
		"ledger_id":       func(s *Settlement) { s.LedgerID = "01M" },
		"effect_id":       func(s *Settlement) { s.EffectID = "01F" },
		"binding_digest":  func(s *Settlement) { s.BindingDigest = events.ZeroDigest },
		"outcome":         func(s *Settlement) { s.Outcome = events.OutcomeSucceeded },
		"evidence_sha256": func(s *Settlement) { s.EvidenceSHA256 = events.ZeroDigest },
		"operator":        func(s *Settlement) { s.Operator = "main/other" },
		"issued_at":       func(s *Settlement) { s.IssuedAt += 2 * tolerance },
	} {
		s := want
		forge(&s)
		if _, err := VerifySettlement(signed(t, 'o', s.Text()), public, want); err == nil || err.Error() != "not the statement about this effect: "+field {
			t.Errorf("%s: %v", field, err)
		}
	}
	// An approval is no settlement, nor the other way round.
	if _, err := VerifySettlement(signed(t, 'o', expected().Text()), public, want); err == nil {
		t.Error("an approval settles")
	}
	if _, err := Verify(signed(t, 'o', want.Text()), public, expected()); err == nil {
		t.Error("a settlement approves")
	}
	if _, err := ParseSettlement(want.Text() + " "); err == nil {
		t.Error("not canonical, and accepted")
	}
}

func FuzzParseStatement(f *testing.F) {
	f.Add(expected().Text())
	f.Add(`{"v":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseStatement(text)
		if err == nil && s.Text() != text {
			t.Fatalf("P5: %q is read as %q", text, s.Text())
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	_, public := key(b, 'a')
	s := signed(b, 'a', expected().Text())
	for b.Loop() {
		if _, err := Verify(s, public, expected()); err != nil {
			b.Fatal(err)
		}
	}
}

package home

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/effectd/effectd/events"
)

// The template says what the defaults are: uncommented, it changes nothing, and
// it has every key.
func TestTemplateIsTheDefaults(t *testing.T) {
	var live []string
	for line := range strings.Lines(ConfigTemplate) {
		if text, ok := strings.CutPrefix(line, "# "); ok && strings.Contains(text, ":") && !strings.Contains(text, ". ") && !strings.Contains(text, "; ") {
			live = append(live, text)
		}
	}
	text := strings.Replace(strings.Join(live, ""), "node: node\n", "", 1)
	c, err := ParseConfig("template", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if want := (Config{}).WithDefaults(); !reflect.DeepEqual(c, want) {
		t.Errorf("%+v\nwant\n%+v", c, want)
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Config](), reflect.TypeFor[LimitsConfig](), reflect.TypeFor[TLSConfig]()} {
		for i := range typ.NumField() {
			if key := typ.Field(i).Tag.Get("yaml"); !strings.Contains(ConfigTemplate, key+":") {
				t.Errorf("no %s in the template", key)
			}
		}
	}
}

func TestParseConfig(t *testing.T) {
	c, err := ParseConfig("effectd.yaml", []byte("node: n1\nlimits:\n  effect_records: 5\n  live_bytes: 2MiB\n  record_bytes: 8192\n  log_bytes: 2 GiB\npermit_ttl: 90s\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := events.Limits{Profile: "local", EffectRecords: 5, LiveBytes: 2 << 20, RecordBytes: 8192, LogBytes: 2 << 30,
		PreparedPerPrincipal: 1000, RequestsInFlight: 1024, PermitTTLMS: 90_000}
	if got := c.LedgerLimits(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if c.Node != "n1" || time.Duration(c.ShutdownBudget) != 30*time.Second {
		t.Errorf("%+v", c)
	}
	for _, empty := range []string{"", "\n", "# only comments\n", "---\n", "limits:\n"} {
		if _, err := ParseConfig("effectd.yaml", []byte(empty)); err != nil {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

func TestConfigFaults(t *testing.T) {
	for text, says := range map[string]string{
		"node: a\nlimts: {}\n":                      `effectd.yaml:2:1: unknown field "limts"`,
		"limits:\n  profile: local\n  effects: 3\n": `effectd.yaml:3:3: unknown field "effects"`,
		"permit_ttl: 300\n":                         "effectd.yaml:1:13: want a duration",
		"node: a\nspool_bytes: lots\n":              "effectd.yaml:2:14: want bytes",
		"spool_bytes: 99999999999999GiB\n":          "effectd.yaml:1:14: want bytes",
		"spool_bytes: [1]\n":                        "want bytes",
		"node: [1\n":                                "effectd.yaml:1",
		"limits: 3\n":                               "effectd.yaml:1",
		"node: a\nnode: b\n":                        "effectd.yaml:2",
		"node: a\n---\nnode: b\n":                   "more than one document",
		"node: A b\n":                               "node: want",
		"limits: {record_bytes: 1MiB}\n":            "limits.record_bytes: want",
		"limits: {effect_records: -1}\n":            "limits.effect_records: want",
		"limits: {profile: huge}\n":                 "limits.profile",
		"disk_reserve: -5MiB\n":                     "disk_reserve: want",
		"permit_ttl: -3s\n":                         "permit_ttl: want",
		"replicas: 9\n":                             "replicas: want",
		"tls: {cert: a.pem}\n":                      "tls: cert and key go together",
	} {
		_, err := ParseConfig("effectd.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	// Every fault at once.
	_, err := ParseConfig("effectd.yaml", []byte("node: A\nreplicas: 9\nshutdown_budget: 5h\nspool_bytes: 3\n"))
	for _, key := range []string{"node", "replicas", "shutdown_budget", "spool_bytes"} {
		if err == nil || !strings.Contains(err.Error(), key+":") {
			t.Errorf("%v does not name %s", err, key)
		}
	}
	if err := (Config{}).WithDefaults().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func TestConfigFileMayBeMissing(t *testing.T) {
	h := initHome(t)
	if err := os.Remove(h.ConfigFile()); err != nil {
		t.Fatal(err)
	}
	if c, err := h.LoadConfig(); err != nil || !reflect.DeepEqual(c, Config{}.WithDefaults()) {
		t.Errorf("%+v %v", c, err)
	}
}

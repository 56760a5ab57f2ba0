package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/aggregate/operation"
)

// block is a sh block of a document, with the mark before it:
// "<!-- test: skip reason -->", "<!-- test: background -->" or, if it serves only
// once it says certain words, "<!-- test: background until: words -->".
type block struct{ mark, text string }

var fenced = regexp.MustCompile("(?m)(?:^<!-- test: ([^>]*) -->\n)?^```sh\n((?s:.*?))^```$")

func blocksOf(text string) (out []block) {
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		out = append(out, block{m[1], m[2]})
	}
	return out
}

// Every command in the documents works as written, in order, in an empty directory.
func TestDocuments(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append([]string{"../../README.md"}, files...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			if strings.Contains(string(text), "\nnats-server ") {
				needNATSServer(t) // beside the binary
				text = bytes.ReplaceAll(text, []byte("4222"), []byte(freePort(t)))
			}
			dir := t.TempDir()
			for _, b := range blocksOf(string(text)) {
				b.run(t, dir)
			}
			if filepath.Base(file) == "README.md" {
				stockClient(t, dir, string(text))
			}
		})
	}
}

func (b block) run(t *testing.T, dir string) {
	t.Helper()
	if reason, skip := strings.CutPrefix(b.mark, "skip"); skip {
		t.Logf("not run, %s: %s", strings.TrimSpace(reason), strings.TrimSpace(b.text))
		return
	}
	cmd := exec.Command("sh", "-eu", "-c", b.text)
	kind, words, merged := strings.Cut(b.mark, " until: ")
	background := kind == "background"
	if background {
		cmd = exec.Command("sh", "-eu", "-c", "exec "+b.text)
	}
	if merged { // the words may be in its log
		cmd.Args[3] = "exec 2>&1; " + cmd.Args[3]
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "EFFECTD_LISTEN=127.0.0.1:0")
	if background {
		s := startUntil(t, cmd, words)
		t.Cleanup(func() {
			if code := s.signal(t, syscall.SIGTERM); code != 0 {
				t.Errorf("%s: exit code %d\n%s", b.text, code, s.errs)
			}
		})
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	stopped := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stopped()
	out, err := cmd.CombinedOutput()
	t.Logf("$ %s%s", b.text, out)
	if err != nil {
		t.Fatalf("%v:\n%s\n%s", err, b.text, out)
	}
}

// freePort is a port that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

var stockLine = regexp.MustCompile(`(?m)^nats --nkey (\S+) --inbox-prefix (\S+) req (\S+) '(.*)'$`)

// The line for the stock client works with any client that does what it says.
func stockClient(t *testing.T, dir, text string) {
	t.Helper()
	m := stockLine.FindStringSubmatch(text)
	if m == nil {
		t.Fatal("no line for the stock client")
	}
	var node running
	readJSON(t, filepath.Join(dir, "effectd-data", "node.json"), &node)
	key, err := nats.NkeyOptionFromSeed(filepath.Join(dir, m[1]))
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(node.NATSURL, key, nats.CustomInboxPrefix(m[2]))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	reply, err := nc.Request(m[3], []byte(m[4]), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(reply.Data, []byte(`"repeat":true`)) {
		t.Errorf("reply: %s", reply.Data)
	}
}

// The contracts of the documents compile, and every key that a contract may have
// stands among them: what the compiler knows is what it names when it does not.
func TestOperationFiles(t *testing.T) {
	page := docPage(t, "operation-files.md")
	contracts := fencedAs(page, "yaml")
	if len(contracts) != 2 {
		t.Fatalf("%d contracts", len(contracts))
	}
	for i, text := range contracts {
		if _, err := operation.Compile("contract.yaml", []byte(text)); err != nil {
			t.Errorf("contract %d: %v", i, err)
		}
	}
	charge, file := contracts[0], contracts[1]
	for _, wrong := range []string{
		charge + "frobnicate: 1\n",
		strings.Replace(charge, "  kind: http\n", "  kind: http\n  frobnicate: 1\n", 1),
		strings.Replace(file, "  kind: file\n", "  kind: file\n  frobnicate: 1\n", 1),
		strings.Replace(charge, "    outcome: succeeded\n", "    outcome: succeeded\n    frobnicate: 1\n", 1),
		strings.Replace(charge, "  settling_window:", "  frobnicate: 1\n  settling_window:", 1),
		strings.Replace(charge, "precondition: {", "precondition: {frobnicate: 1, ", 1),
		strings.Replace(charge, "idempotency: {", "idempotency: {frobnicate: 1, ", 1),
		charge + "preview: {frobnicate: 1}\n",
	} {
		_, err := operation.Compile("contract.yaml", []byte(wrong))
		if err == nil {
			t.Fatalf("compiles:\n%s", wrong)
		}
		_, known, found := strings.Cut(err.Error(), "known here: ")
		if !found {
			t.Fatalf("%v:\n%s", err, wrong)
		}
		known, _, _ = strings.Cut(known, "\n")
		for key := range strings.SplitSeq(known, ", ") {
			if !strings.Contains(page, "`"+key+"`") && !strings.Contains(page, "`reconcile."+key+"`") {
				t.Errorf("the page does not say what %s is", key)
			}
		}
	}
}

// The policy that asks for approvals does so when it is added to the one of init.
func TestApprovalPolicy(t *testing.T) {
	asks := fencedAs(docPage(t, "operations.md"), "cedar")
	if len(asks) != 1 {
		t.Fatalf("%d policies", len(asks))
	}
	dir := ledgerDir(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text, err := os.ReadFile(filepath.Join(dir, "policy.cedar"))
	if err != nil {
		t.Fatal(err)
	}
	write("operations/charge.yaml", fencedAs(docPage(t, "operation-files.md"), "yaml")[0])
	write("policy.cedar", string(text)+"\n"+asks[0])
	effectd(t, "policy", "check", "--data", dir).want(t, 0)
	effectd(t, "policy", "test", "--data", dir, write("examples.yaml", `
- {name: small, principal: producer, operation: charge, payload: {account: a, amount: 10000}, expect: commit}
- {name: large, principal: producer, operation: charge, payload: {account: a, amount: 10001}, expect: request_approval}
`)).want(t, 0)
}

// Every command stands in the table of commands, and no other.
func TestCommandTable(t *testing.T) {
	parser, err := kong.New(&cli{}, kong.ExplicitGroups(groups()), kong.Vars{"data": defaultData})
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, leaf := range parser.Model.Leaves(true) {
		commands = append(commands, leaf.Path())
	}
	var rows []string
	for _, m := range commandRow.FindAllStringSubmatch(docPage(t, "commands.md"), -1) {
		rows = append(rows, m[1])
	}
	slices.Sort(commands)
	slices.Sort(rows)
	if !slices.Equal(commands, rows) {
		t.Errorf("commands: %q\ntable:    %q", commands, rows)
	}
}

var commandRow = regexp.MustCompile("(?m)^\\| `([a-z -]+)` \\|")

func docPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fencedAs are the blocks of one language.
func fencedAs(text, language string) (out []string) {
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

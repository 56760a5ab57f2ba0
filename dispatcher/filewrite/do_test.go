package filewrite

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/effectd/effectd/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ample() Options { return Options{Now: time.Now, Deadline: time.Now().Add(20 * time.Second)} }

func write(t *testing.T, w Write) Answer {
	t.Helper()
	return Do(context.Background(), w, ample())
}

func sum(s string) string { return string(events.DigestBytes([]byte(s))) }

// tree is a root with a file beside it that nothing may touch.
func tree(t *testing.T) (root, outside string) {
	t.Helper()
	base := t.TempDir()
	root, outside = filepath.Join(base, "root"), filepath.Join(base, "outside")
	for _, err := range []error{os.MkdirAll(filepath.Join(root, "dir"), 0o700), os.Mkdir(outside, 0o700),
		os.WriteFile(filepath.Join(outside, "old"), []byte("old"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return root, outside
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
}

func wantContent(t *testing.T, path, content string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != content {
		t.Fatalf("%s holds %q (%v), want %q", filepath.Base(path), got, err, content)
	}
}

// wantNames checks the whole directory: no temporary file is left (W7).
func wantNames(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Fatalf("%s has %q, want %q", filepath.Base(dir), got, names)
	}
}

func wantNotWritten(t *testing.T, got Answer, fault Fault) {
	t.Helper()
	if got.Proof != NotWritten || got.Fault != fault || got.Reason != events.ReasonNotSent || got.Detail == "" || got.SHA256 != "" {
		t.Fatalf("got %+v, want not written for %s", got, fault)
	}
}

func wantWritten(t *testing.T, got Answer, content string) {
	t.Helper()
	if got != (Answer{Proof: Written, SHA256: events.Digest(sum(content))}) {
		t.Fatalf("got %+v, want written", got)
	}
}

func TestCreate(t *testing.T) {
	root, _ := tree(t)
	w := Write{Root: root, Path: "dir/a", Content: []byte("new")}
	wantWritten(t, write(t, w), "new")
	wantContent(t, filepath.Join(root, "dir/a"), "new")
	wantNotWritten(t, write(t, Write{Root: root, Path: "dir/a", Content: []byte("newer")}), FaultExists)
	wantContent(t, filepath.Join(root, "dir/a"), "new")
	wantWritten(t, write(t, Write{Root: root, Path: "empty", Mode: 0o666}), "")
	wantMode(t, filepath.Join(root, "dir/a"), 0o600)
	wantMode(t, filepath.Join(root, "empty"), 0o666) // whatever the umask
	wantNames(t, filepath.Join(root, "dir"), "a")
	wantNames(t, root, "dir", "empty")
}

func wantMode(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if got, err := os.Stat(path); err != nil || got.Mode() != mode {
		t.Fatalf("mode %v (%v), want %v", got.Mode(), err, mode)
	}
}

func TestReplace(t *testing.T) {
	root, _ := tree(t)
	path := filepath.Join(root, "a")
	put(t, path, "old")
	wantNotWritten(t, write(t, Write{Root: root, Path: "a", Content: []byte("new"), Expect: sum("other")}), FaultMismatch)
	wantNotWritten(t, write(t, Write{Root: root, Path: "b", Content: []byte("new"), Expect: sum("")}), FaultAbsent)
	wantNotWritten(t, write(t, Write{Root: root, Path: "dir", Content: []byte("new"), Expect: sum("")}), FaultNotRegular)
	wantContent(t, path, "old")
	wantWritten(t, write(t, Write{Root: root, Path: "a", Content: []byte("new"), Expect: sum("old")}), "new")
	wantContent(t, path, "new")
	wantMode(t, path, 0o640) // kept
	wantWritten(t, write(t, Write{Root: root, Path: "a", Content: []byte("newer"), Expect: sum("new"), Mode: 0o644}), "newer")
	wantMode(t, path, 0o644)
	wantNotWritten(t, write(t, Write{Root: root, Path: "a", Content: []byte("newer"), Expect: sum("old")}), FaultMismatch)
	wantNames(t, root, "a", "dir")
}

// A pipe must not block, nor a symbolic link be followed, by the comparison.
func TestReplaceOnlyRegularFiles(t *testing.T) {
	root, outside := tree(t)
	put(t, filepath.Join(root, "target"), "old")
	for name, make := range map[string]func(string) error{
		"pipe":    func(p string) error { return unix.Mkfifo(p, 0o600) },
		"inside":  func(p string) error { return os.Symlink("target", p) },
		"outside": func(p string) error { return os.Symlink(filepath.Join(outside, "old"), p) },
		"dangles": func(p string) error { return os.Symlink("nowhere", p) },
	} {
		if err := make(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
		wantNotWritten(t, write(t, Write{Root: root, Path: name, Content: []byte("new"), Expect: sum("old")}), FaultNotRegular)
		wantNotWritten(t, write(t, Write{Root: root, Path: name, Content: []byte("new")}), FaultExists)
	}
	wantContent(t, filepath.Join(root, "target"), "old")
	wantContent(t, filepath.Join(outside, "old"), "old")
	wantNames(t, root, "dangles", "dir", "inside", "outside", "pipe", "target")
}

// W1
func TestEscapes(t *testing.T) {
	root, outside := tree(t)
	for name, to := range map[string]string{"up": "../outside", "absolute": outside, "twice": "up", "within": "dir"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"../outside/new", "dir/../../outside/new", filepath.Join(outside, "new"),
		"/etc/new", "up/new", "absolute/new", "twice/new", "dir/../up/new", ".."} {
		for _, expect := range []string{"", sum("old")} {
			got := write(t, Write{Root: root, Path: path, Content: []byte("new"), Expect: expect})
			wantNotWritten(t, got, FaultEscape)
			if strings.Contains(got.Detail, outside) {
				t.Fatalf("the detail repeats the path: %s", got.Detail)
			}
		}
		wantNotWritten(t, write(t, Write{Root: root, Path: strings.Replace(path, "new", "old", 1), Expect: sum("old")}), FaultEscape)
	}
	wantNames(t, outside, "old")
	wantContent(t, filepath.Join(outside, "old"), "old")
	wantNames(t, filepath.Join(root, "dir"))
	wantWritten(t, write(t, Write{Root: root, Path: "within/new", Content: []byte("new")}), "new")
	wantNames(t, filepath.Join(root, "dir"), "new")
}

func TestInvalid(t *testing.T) {
	root, _ := tree(t)
	for _, w := range []Write{
		{Path: "a"}, {Root: root}, {Root: root, Path: "dir/"}, {Root: root, Path: "."}, {Root: root, Path: "dir/."}, {Root: root, Path: "a\x00b"},
		{Root: root, Path: "a", Expect: "sum"}, {Root: root, Path: "a", Expect: strings.ToUpper(sum("a"))},
		{Root: root, Path: "a", Mode: fs.ModeSetuid | 0o755}, {Root: root, Path: "dir/.effectd-X.tmp"},
	} {
		wantNotWritten(t, write(t, w), FaultInvalid)
	}
	wantNotWritten(t, Do(context.Background(), Write{Root: root, Path: "a"}, Options{Deadline: time.Now().Add(time.Hour)}), FaultInvalid)
	wantNotWritten(t, write(t, Write{Root: root, Path: "none/a"}), FaultIO)
	wantNotWritten(t, write(t, Write{Root: filepath.Join(root, "none"), Path: "a"}), FaultIO)
	wantNames(t, root, "dir")
}

// W2: one of many creators wins.
func TestCreatorsRace(t *testing.T) {
	root, _ := tree(t)
	won := race(t, 32, func(i int) (Write, Fault) {
		return Write{Root: root, Path: "a", Content: bytes.Repeat([]byte{byte(i)}, 5000)}, FaultExists
	})
	wantContent(t, filepath.Join(root, "a"), string(bytes.Repeat([]byte{byte(won)}, 5000)))
	wantNames(t, root, "a", "dir")
}

// W3: one of many replacers that expect the same wins.
func TestReplacersRace(t *testing.T) {
	root, _ := tree(t)
	put(t, filepath.Join(root, "a"), "old")
	won := race(t, 32, func(i int) (Write, Fault) {
		return Write{Root: root, Path: "a", Content: bytes.Repeat([]byte{byte(i)}, 5000), Expect: sum("old")}, FaultMismatch
	})
	wantContent(t, filepath.Join(root, "a"), string(bytes.Repeat([]byte{byte(won)}, 5000)))
	wantNames(t, root, "a", "dir")
}

// race returns which of n concurrent writes was the one that wrote.
func race(t *testing.T, n int, of func(i int) (Write, Fault)) int {
	t.Helper()
	answers := make([]Answer, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			w, _ := of(i)
			<-start
			answers[i] = Do(context.Background(), w, ample())
		})
	}
	close(start)
	all.Wait()
	won := -1
	for i, got := range answers {
		w, fault := of(i)
		if got.Proof != Written {
			wantNotWritten(t, got, fault)
			continue
		}
		if won >= 0 {
			t.Fatalf("writes %d and %d both say written", won, i)
		}
		wantWritten(t, got, string(w.Content))
		won = i
	}
	if won < 0 {
		t.Fatal("nobody wrote")
	}
	return won
}

// W5: the last reading of the clock decides.
func TestDeadline(t *testing.T) {
	root, _ := tree(t)
	put(t, filepath.Join(root, "a"), "old")
	for _, w := range []Write{{Root: root, Path: "b"}, {Root: root, Path: "a", Expect: sum("old")}} {
		opts := ample()
		opts.Now = func() time.Time {
			wantStaged(t, root)
			return opts.Deadline
		}
		wantNotWritten(t, Do(context.Background(), w, opts), FaultDeadline)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errors.New("stop"))
		wantNotWritten(t, Do(ctx, w, ample()), FaultDeadline)
		wantNotWritten(t, Do(context.Background(), w, Options{Now: time.Now}), FaultDeadline)
	}
	wantContent(t, filepath.Join(root, "a"), "old")
	wantNames(t, root, "a", "dir")
}

// wantStaged checks that a temporary file is there, and known as such (W7).
func wantStaged(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if IsLeftover(e.Name()) {
			return
		}
	}
	t.Fatal("no temporary file is known as such")
}

// W5: waiting for the lock ends at the deadline.
func TestLockHeldByAnother(t *testing.T) {
	root, _ := tree(t)
	put(t, filepath.Join(root, "a"), "old")
	dir, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	w := Write{Root: root, Path: "a", Content: []byte("new"), Expect: sum("old")}
	opts := Options{Now: time.Now, Deadline: time.Now().Add(50 * time.Millisecond)}
	wantNotWritten(t, Do(context.Background(), w, opts), FaultDeadline)
	wantContent(t, filepath.Join(root, "a"), "old")
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	wantWritten(t, write(t, w), "new")
}

// W3: a change between staging and the lock is seen.
func TestChangedBeforeTheLock(t *testing.T) {
	root, _ := tree(t)
	put(t, filepath.Join(root, "a"), "old")
	w := Write{Root: root, Path: "a", Content: []byte("new"), Expect: sum("old")}
	p, err := open(w)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	unlock, err := p.lock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan Answer)
	go func() { answered <- Do(context.Background(), w, ample()) }()
	for staged := false; !staged; {
		entries, _ := os.ReadDir(root)
		for _, e := range entries {
			staged = staged || IsLeftover(e.Name())
		}
	}
	put(t, filepath.Join(root, "a"), "changed")
	unlock()
	wantNotWritten(t, <-answered, FaultMismatch)
	wantContent(t, filepath.Join(root, "a"), "changed")
}

// W6: after the link or rename a failed fsync is lost, never "not written".
func TestDirectoryNotSynced(t *testing.T) {
	root, _ := tree(t)
	put(t, filepath.Join(root, "a"), "old")
	for _, w := range []Write{{Root: root, Path: "b"}, {Root: root, Path: "a", Expect: sum("old")}} {
		got := do(context.Background(), w, ample(), func(*place) error { return unix.EIO })
		if got.Proof != Lost || got.Reason != events.ReasonAdapterError || got.Fault != "" || got.SHA256 != "" {
			t.Fatalf("%+v", got)
		}
	}
	wantNames(t, root, "a", "b", "dir")
}

// W6: what an error of link or rename proves depends on what has the name.
func TestFailedMove(t *testing.T) {
	root, _ := tree(t)
	w := Write{Root: root, Path: "a", Content: []byte("new")}
	for name, c := range map[string]struct {
		err   error
		moved bool
		proof Proof
		fault Fault
	}{
		"answer lost":    {unix.EIO, true, Written, ""},
		"repeated":       {unix.EEXIST, true, Written, ""},
		"taken":          {unix.EEXIST, false, NotWritten, FaultExists},
		"no space":       {unix.ENOSPC, false, NotWritten, FaultIO},
		"no hard links":  {unix.EPERM, false, NotWritten, FaultIO},
		"device failing": {unix.EIO, false, Lost, ""},
		"server away":    {unix.ESTALE, false, Lost, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w.Path = strings.ReplaceAll(name, " ", "-")
			p, err := open(w)
			if err != nil {
				t.Fatal(err)
			}
			defer p.close()
			if err := p.stage(w); err != nil {
				t.Fatal(err)
			}
			defer p.unstage()
			if c.moved {
				if err := p.parent.Link(p.temp, p.name); err != nil {
					t.Fatal(err)
				}
			}
			moved := &os.LinkError{Op: "linkat", Old: "hush", New: "hush", Err: c.err}
			got := answer(p.finish(moved, (*place).sync), "sum")
			if got.Proof != c.proof || got.Fault != c.fault || strings.Contains(got.Detail, "hush") {
				t.Fatalf("%+v", got)
			}
		})
	}
}

// W7: leftovers of a crash, a hard link to the target among them, harm nothing.
func TestLeftovers(t *testing.T) {
	root, _ := tree(t)
	put(t, filepath.Join(root, "a"), "old")
	if err := os.Link(filepath.Join(root, "a"), filepath.Join(root, ".effectd-CRASHED.tmp")); err != nil {
		t.Fatal(err)
	}
	wantWritten(t, write(t, Write{Root: root, Path: "a", Content: []byte("new"), Expect: sum("old")}), "new")
	wantContent(t, filepath.Join(root, ".effectd-CRASHED.tmp"), "old")
	wantNames(t, root, ".effectd-CRASHED.tmp", "a", "dir")
}

package filewrite

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/effectd/effectd/events"
)

// Write is one conditional write.
type Write struct {
	Root    string // directory; fixed by the contract
	Path    string // relative to the root; its directory must exist
	Content []byte
	// Expect is the SHA-256 of the content to be replaced, in lower-case
	// hexadecimal. Empty means create: nothing may have the name.
	Expect string
	// Mode is the permission of the file. 0 means 0600, or the permission of the
	// file that is replaced.
	Mode fs.FileMode
}

// Proof says what is proven about the write. The zero value proves nothing.
type Proof int

// What can be proven.
const (
	Lost       Proof = iota // possibly written, possibly not durable
	NotWritten              // no effect
	Written                 // durable
)

func (p Proof) String() string {
	switch p {
	case NotWritten:
		return "not written"
	case Written:
		return "written"
	default:
		return "lost"
	}
}

// Fault says why a file was not written.
type Fault string

// The faults. Those of the precondition come first.
const (
	FaultExists     Fault = "exists"      // create: something has the name
	FaultAbsent     Fault = "absent"      // replace: nothing has the name
	FaultMismatch   Fault = "mismatch"    // replace: the content is another
	FaultNotRegular Fault = "not_regular" // a directory, symbolic link or device has the name
	FaultInvalid    Fault = "invalid"     // the write itself is malformed
	FaultEscape     Fault = "escape"      // the path leads outside the root
	FaultDeadline   Fault = "deadline"    // over, or cancelled, before the effect
	FaultIO         Fault = "io"          // the file system refused before the effect
)

// Answer is how a write ended.
type Answer struct {
	Proof  Proof
	SHA256 events.Digest // of the content; Written only
	Fault  Fault         // NotWritten only
	Reason events.Reason // not_sent or adapter_error; empty when written
	Detail string
}

// Options bound a write.
type Options struct {
	// Deadline must come from Now, so that it carries a monotonic reading. The
	// zero Deadline is over.
	Deadline time.Time
	// Now is the clock that is read before the effect.
	Now func() time.Time
}

// Validate reports why the write can never be made.
func (w Write) Validate() error {
	var faults []error
	if w.Root == "" {
		faults = append(faults, errors.New("root: missing"))
	}
	if strings.ContainsRune(w.Path, 0) || w.Path == "" || strings.HasSuffix(w.Path, "/") || filepath.Base(w.Path) == "." {
		faults = append(faults, errors.New("path: does not name a file"))
	}
	if IsLeftover(filepath.Base(w.Path)) {
		faults = append(faults, errors.New("path: the name is reserved for temporary files"))
	}
	if sum, err := hex.DecodeString(w.Expect); w.Expect != "" && (err != nil || len(sum) != 32 || strings.ToLower(w.Expect) != w.Expect) {
		faults = append(faults, errors.New("expect: is not a SHA-256 in lower-case hexadecimal"))
	}
	if w.Mode&^fs.ModePerm != 0 {
		faults = append(faults, errors.New("mode: has more than permission bits"))
	}
	return errors.Join(faults...)
}

const (
	leftoverPrefix = ".effectd-"
	leftoverSuffix = ".tmp"
)

// IsLeftover reports whether name is that of a temporary file of this package.
// One that no running write uses may be removed.
func IsLeftover(name string) bool {
	return strings.HasPrefix(name, leftoverPrefix) && strings.HasSuffix(name, leftoverSuffix)
}

package operation

import (
	"errors"
	"fmt"

	"cel.dev/cel-go/common/types"

	"github.com/effectd/effectd/events"
)

// Write is one atomic conditional write of kind file, complete.
type Write struct {
	Root     string // absolute, clean
	Path     string // below Root, slash-separated, clean
	Content  []byte
	Mode     uint32        // permission bits of a new file
	Expected events.Digest // SHA-256 of the file to replace; empty: there must be none
}

// FileWrite builds the one protected write of kind file. Errors wrap
// [ErrUnsendable].
func (c *Contract) FileWrite(in Input) (Write, error) {
	if c.file == nil {
		return Write{}, fmt.Errorf("kind %s writes no file: %w", c.Kind, ErrUnsupported)
	}
	v := newScope(in)
	out := Write{Root: c.file.root, Mode: c.file.mode}
	var err error
	if out.Path, err = c.file.path.render(v, &segments{}); err != nil {
		return Write{}, fmt.Errorf("adapter.path: %w: %w", ErrUnsendable, err)
	}
	if !localPath(out.Path) {
		return Write{}, fmt.Errorf("adapter.path: %w: leads out of the root", ErrUnsendable)
	}
	if out.Content, err = c.file.render(v); err != nil {
		return Write{}, fmt.Errorf("adapter.content: %w: %w", ErrUnsendable, err)
	}
	expected, err := c.precondition(in.Precondition)
	if err != nil {
		return Write{}, fmt.Errorf("%w: %w", ErrUnsendable, err)
	}
	out.Expected = events.Digest(expected)
	return out, nil
}

// render gives text and bytes as they are, any other value as canonical JSON.
func (f *fileWrite) render(v *scope) ([]byte, error) {
	if f.content == nil {
		return v.Payload.raw, nil
	}
	value, err := f.content.eval(v)
	if err != nil {
		return nil, errors.New("cannot be computed")
	}
	var out []byte
	switch value := value.(type) {
	case types.String:
		out = []byte(value)
	case types.Bytes:
		out = value
	default:
		if out, err = jsonOf(value); err != nil {
			return nil, err
		}
	}
	if len(out) > maxBody {
		return nil, fmt.Errorf("longer than %d bytes", maxBody)
	}
	return out, nil
}

package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/effectd/effectd/events"
)

// What a caller can decide on.
var (
	// ErrFull: no room for one more record. Take no claim now.
	ErrFull = errors.New("spool is full")
	// ErrTooLarge: the encoded record is above [MaxRecord].
	ErrTooLarge = errors.New("record is too large")
	// ErrExists: the effect has another record, perhaps a damaged one.
	ErrExists = errors.New("effect has another record")
)

// Spool is an open spool. Its methods may be called concurrently.
type Spool struct {
	fs  vfs.FS
	dir string
	max int64

	files sync.Mutex // held for all I/O but the looks at the disk
	held  map[string]held

	space sync.Mutex // never held with I/O but the looks at the disk
	used  int64      // bytes of files, in whole blocks
	slots int64
	free  int64 // on the disk
	look  int   // reservations until the next look
}

// held is a file of the directory.
type held struct {
	checksum events.Digest // "" when damaged
	bytes    int64
	durable  bool
}

// Damaged is a file that is not a whole record. It stays where it is until a
// person removes it.
type Damaged struct {
	Name   string
	Reason string
}

func (d Damaged) Error() string { return fmt.Sprintf("spool file %s: %s", d.Name, d.Reason) }

// Open opens the spool in dir, creating the directory. maxBytes bounds records
// and slots together; it must have room for at least one.
func Open(fs vfs.FS, dir string, maxBytes int64) (*Spool, error) {
	if maxBytes < MaxRecord {
		return nil, fmt.Errorf("spool: max_bytes: must be at least %d", MaxRecord)
	}
	s := &Spool{fs: fs, dir: dir, max: maxBytes, held: map[string]held{}}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("spool: create the directory: %w", err)
	}
	if err := s.syncDir(fs.PathDir(dir)); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	names, err := fs.List(dir)
	if err != nil {
		return nil, fmt.Errorf("spool: list: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, tempSuffix) {
			if err := fs.Remove(s.path(name)); err != nil {
				return nil, fmt.Errorf("spool: remove %s: %w", name, err)
			}
			continue
		}
		record, size, _ := s.read(name)
		s.held[name] = held{checksum: record.Checksum, bytes: onDisk(size), durable: true}
		s.used += onDisk(size)
	}
	// A record of a Put that failed may have been seen, but not be durable.
	if err := s.syncDir(dir); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return s, nil
}

// Put stores a record durably (S1). A record that is there already is not
// written again. After an error the same record may be put again.
func (s *Spool) Put(r Record) error {
	r, body, err := seal(r)
	if err != nil {
		return fmt.Errorf("spool: put %s: %w", r.EffectID, err)
	}
	s.files.Lock()
	defer s.files.Unlock()
	name := nameOf(r.EffectID)
	before, known := s.held[name]
	switch {
	case known && before.checksum != r.Checksum:
		return fmt.Errorf("spool: put %s: %w", r.EffectID, ErrExists)
	case known && before.durable:
		return nil
	}
	size := onDisk(int64(len(body)))
	if !known && !s.take(size) {
		return fmt.Errorf("spool: put %s: %w", r.EffectID, ErrFull)
	}
	if err := s.stage(r.EffectID, body); err != nil {
		if !known {
			s.give(size)
		}
		return fmt.Errorf("spool: put %s: %w", r.EffectID, err)
	}
	// From here on the record may be there, whatever the errors say.
	s.held[name] = held{checksum: r.Checksum, bytes: size}
	err = s.fs.Rename(s.path(tempOf(r.EffectID)), s.path(name))
	if err == nil {
		err = s.syncDir(s.dir)
	}
	if err != nil {
		return fmt.Errorf("spool: put %s: %w", r.EffectID, err)
	}
	s.held[name] = held{checksum: r.Checksum, bytes: size, durable: true}
	return nil
}

// All reads every record, in the order of their claims, and names what is
// damaged (S3). An error means that the directory cannot be read at all.
func (s *Spool) All() ([]Record, []Damaged, error) {
	s.files.Lock()
	defer s.files.Unlock()
	names, err := s.fs.List(s.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("spool: list: %w", err)
	}
	slices.Sort(names)
	var records []Record
	var damaged []Damaged
	for _, name := range names {
		if strings.HasSuffix(name, tempSuffix) {
			continue // of a Put that failed
		}
		record, _, err := s.read(name)
		if err != nil {
			damaged = append(damaged, Damaged{Name: name, Reason: err.Error()})
			continue
		}
		if file := s.held[name]; file.checksum == "" { // readable only now
			s.held[name] = held{checksum: record.Checksum, bytes: file.bytes, durable: true}
		}
		records = append(records, record)
	}
	slices.SortStableFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Claim.Seq, b.Claim.Seq), cmp.Compare(a.Claim.Index, b.Claim.Index))
	})
	return records, damaged, nil
}

// Remove drops the record of an effect, durably (S2). One that is not there is
// removed already; a damaged one is refused.
func (s *Spool) Remove(id events.EffectID) error {
	s.files.Lock()
	defer s.files.Unlock()
	name := nameOf(id)
	file, known := s.held[name]
	if !known {
		return nil
	}
	if file.checksum == "" {
		return fmt.Errorf("spool: remove: %w", Damaged{Name: name, Reason: "only a person may remove it"})
	}
	if err := s.fs.Remove(s.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("spool: remove %s: %w", id, err)
	}
	if err := s.syncDir(s.dir); err != nil {
		return fmt.Errorf("spool: remove %s: %w", id, err)
	}
	delete(s.held, name)
	s.give(file.bytes)
	return nil
}

// Len is the number of files held, damaged ones included.
func (s *Spool) Len() int {
	s.files.Lock()
	defer s.files.Unlock()
	return len(s.held)
}

func (s *Spool) path(name string) string { return s.fs.PathJoin(s.dir, name) }

func tempOf(id events.EffectID) string { return string(id) + tempSuffix }

// stage writes the record under a name that no reader trusts.
func (s *Spool) stage(id events.EffectID, body []byte) error {
	file, err := s.fs.Create(s.path(tempOf(id)), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = s.fs.Remove(s.path(tempOf(id)))
	}
	return err
}

// read gives a record and the size of its file.
func (s *Spool) read(name string) (r Record, size int64, err error) {
	info, err := s.fs.Stat(s.path(name))
	if err != nil {
		return r, MaxRecord, errors.New("cannot be read")
	}
	size = info.Size()
	if _, ok := idOf(name); !ok || info.IsDir() {
		return r, size, errors.New("not a file of the spool")
	}
	file, err := s.fs.Open(s.path(name))
	if err != nil {
		return r, size, errors.New("cannot be read")
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, MaxRecord+1))
	if err != nil {
		return r, size, errors.New("cannot be read")
	}
	r, err = unseal(name, body)
	return r, size, err
}

func (s *Spool) syncDir(name string) error {
	dir, err := s.fs.OpenDir(name)
	if err != nil {
		return fmt.Errorf("open the directory: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("fsync of the directory: %w", err)
	}
	return nil
}

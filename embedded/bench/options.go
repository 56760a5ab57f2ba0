package bench

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/effectd/effectd/events"
)

// Options is what is measured. Zero means default.
type Options struct {
	// InFlight is how many requests are kept open, one row each (default 1, 64, 512).
	InFlight []int
	// Duration is how long a row is measured on each side (default 5 s).
	Duration time.Duration
	// WarmUp comes before each measurement and is not counted (default 1 s).
	WarmUp time.Duration
	// Dir is where the scratch directories are made (default: the system's
	// directory for temporary files). Its disk is what is measured.
	Dir string
	// Progress is told what is measured now, and how many steps of all are done.
	Progress func(step string, done, total int)

	sent func(events.EffectID) // told of each send; for tests
}

// MaxInFlight is the largest row: as many requests as the scratch ledger lets one
// principal have.
const MaxInFlight = 4096

const (
	rounds      = 2 // of each side in a row
	connections = 4 // of producers
	minDuration = time.Millisecond
	maxDuration = 10 * time.Minute
)

// Validate reports every fault at once.
func (o Options) Validate() error {
	var faults []error
	for _, n := range o.InFlight {
		if n < 1 || n > MaxInFlight {
			faults = append(faults, fmt.Errorf("in flight: want 1 to %d", MaxInFlight))
			break
		}
	}
	if d := o.Duration; d != 0 && (d < minDuration || d > maxDuration) {
		faults = append(faults, fmt.Errorf("duration: want %v to %v", minDuration, maxDuration))
	}
	if o.WarmUp < 0 || o.WarmUp > maxDuration {
		faults = append(faults, fmt.Errorf("warm-up: want at most %v", maxDuration))
	}
	return errors.Join(faults...)
}

func (o Options) withDefaults() Options {
	if len(o.InFlight) == 0 {
		o.InFlight = []int{1, 64, 512}
	}
	o.InFlight = slices.Compact(slices.Sorted(slices.Values(o.InFlight)))
	if o.Duration == 0 {
		o.Duration = 5 * time.Second
	}
	if o.WarmUp == 0 {
		o.WarmUp = time.Second
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	if o.sent == nil {
		o.sent = func(events.EffectID) {}
	}
	return o
}

// scratch makes a directory and returns what removes it (B3).
func (o Options) scratch() (dir string, remove func() error, err error) {
	if dir, err = os.MkdirTemp(o.Dir, "effectd-bench-"); err != nil {
		return "", nil, fmt.Errorf("scratch directory: %w", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}

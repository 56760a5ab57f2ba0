package main

import (
	"runtime"
	"runtime/debug"

	"github.com/effectd/effectd/embedded"
)

// versionCmd prints what this program is.
type versionCmd struct{}

// Run implements the command.
func (versionCmd) Run(e *env) error {
	v := struct {
		Version  string `json:"version"`
		Revision string `json:"revision,omitzero"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
	}{Version: embedded.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, s := range build.Settings {
			if s.Key == "vcs.revision" {
				v.Revision = s.Value
			}
		}
	}
	e.show(v, func(p *page) {
		text := "effectd " + v.Version
		if v.Revision != "" {
			text += " (" + v.Revision + ")"
		}
		p.line(text + ", " + v.Go + ", " + v.Platform)
	})
	return nil
}

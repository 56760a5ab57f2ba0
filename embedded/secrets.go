package embedded

import (
	"os"
	"path/filepath"
	"strings"
)

// secrets reads a secret at send time: from the environment, else from the file
// secrets/NAME of the configuration directory, without its final newline. Nothing
// is kept.
func secrets(config string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		if v, ok := os.LookupEnv(name); ok {
			return v, true
		}
		if name == "" || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
			return "", false
		}
		b, err := os.ReadFile(filepath.Join(config, "secrets", name))
		if err != nil {
			return "", false
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), true
	}
}

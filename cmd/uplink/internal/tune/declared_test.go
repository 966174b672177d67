package tune

import (
	"reflect"
	"strings"
	"testing"
)

// declared gives the fields of Everything as structOf does.
func declared(t *testing.T) (out [][3]string) {
	t.Helper()
	typ := reflect.TypeFor[Everything]()
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag := ""
		if f.Tag != "" {
			tag = "`" + string(f.Tag) + "`"
		}
		out = append(out, [3]string{f.Name, strings.ReplaceAll(f.Type.String(), "]uint8", "]byte"), tag})
	}
	return out
}

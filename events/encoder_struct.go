package events

import (
	"reflect"
	"slices"
	"strings"
)

// member is a field of a struct, or of one embedded in it.
type member struct {
	name   string
	opener string // the name as it is written, with its colon
	index  []int
	absent func(reflect.Value) bool // whether it is left out; nil: never
	encode encoder
}

// structEncoder writes the members of a struct in the order of their names; nil
// if one of them is left to the library.
func structEncoder(t reflect.Type, within []reflect.Type) encoder {
	members, ok := membersOf(t, nil, within)
	if !ok {
		return nil
	}
	slices.SortFunc(members, func(a, b member) int { return compareNames(a.name, b.name) })
	for i := range members {
		if i > 0 && members[i].name == members[i-1].name {
			return nil
		}
	}
	return func(dst []byte, v reflect.Value) (_ []byte, err error) {
		dst = append(dst, '{')
		first := len(dst)
		for i := range members {
			m := &members[i]
			field := v.Field(m.index[0])
			for _, n := range m.index[1:] {
				field = field.Field(n)
			}
			if m.absent != nil && m.absent(field) {
				continue
			}
			if len(dst) > first {
				dst = append(dst, ',')
			}
			if dst, err = m.encode(append(dst, m.opener...), field); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
}

// membersOf lists the members of a struct that stands at an index of another;
// false if one of them is left to the library.
func membersOf(t reflect.Type, at []int, within []reflect.Type) (all []member, ok bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clip(at), i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct && !hasOwnForm(f.Type):
			inner, ok := membersOf(f.Type, index, within)
			if !ok {
				return nil, false
			}
			all = append(all, inner...)
			continue
		case f.Anonymous || !f.IsExported() || name == "" || name == "-":
			return nil, false
		}
		absent, known := absence(f.Type, options)
		encode := makeEncoder(f.Type, within)
		if !known || encode == nil {
			return nil, false
		}
		all = append(all, member{name: name, opener: string(appendText(nil, name)) + ":", index: index, absent: absent, encode: encode})
	}
	return all, true
}

// absence says when a field with these options is left out.
func absence(t reflect.Type, options string) (absent func(reflect.Value) bool, known bool) {
	switch options {
	case "":
		return nil, true
	case "omitzero": // of our types with IsZero, the zero value is the only one
		return reflect.Value.IsZero, true
	case "omitempty":
		switch t.Kind() {
		case reflect.Map, reflect.Slice:
			return func(v reflect.Value) bool { return v.Len() == 0 }, t != rawType
		}
	}
	return nil, false
}

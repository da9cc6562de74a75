package repository

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// annotation is one [[annotations]] table of REUSE.toml: files, and what holds for them.
type annotation struct {
	globs      []string
	patterns   []*regexp.Regexp
	copyrights []string
	licenses   []string
}

func (a annotation) covers(file string) bool {
	for _, pattern := range a.patterns {
		if pattern.MatchString(file) {
			return true
		}
	}
	return false
}

// parseAnnotations reads the part of TOML that REUSE.toml needs: tables of strings and lists of strings. It refuses
// whatever else it meets, since a check that guesses would let files pass.
func parseAnnotations(text string) ([]annotation, error) {
	statements, err := splitStatements(text)
	if err != nil {
		return nil, err
	}
	var parsed []annotation
	for _, s := range statements {
		switch {
		case s.text == "[[annotations]]":
			parsed = append(parsed, annotation{})
		case len(parsed) == 0 && s.text == "version = 1":
		case len(parsed) == 0:
			return nil, fmt.Errorf("REUSE.toml:%d: %q is before the first [[annotations]]", s.line, s.text)
		default:
			if err := parsed[len(parsed)-1].set(s.text); err != nil {
				return nil, fmt.Errorf("REUSE.toml:%d: %w", s.line, err)
			}
		}
	}
	return parsed, nil
}

type statement struct {
	line int
	text string
}

// splitStatements joins lists that span lines and drops comments and empty lines.
func splitStatements(text string) ([]statement, error) {
	var statements []statement
	var open *statement
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(stripComment(line))
		switch {
		case line == "":
			continue
		case open != nil:
			open.text += " " + line
		default:
			statements = append(statements, statement{line: i + 1, text: line})
			open = &statements[len(statements)-1]
		}
		if strings.Count(open.text, "[") == strings.Count(open.text, "]") {
			open = nil
		}
	}
	if open != nil {
		return nil, fmt.Errorf("REUSE.toml:%d: the list is not closed", open.line)
	}
	return statements, nil
}

// stripComment cuts a # that is not in a string.
func stripComment(line string) string {
	quoted := false
	for i, c := range line {
		switch {
		case c == '"':
			quoted = !quoted
		case c == '#' && !quoted:
			return line[:i]
		}
	}
	return line
}

func (a *annotation) set(text string) error {
	key, value, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("%q is not KEY = VALUE", text)
	}
	values, err := parseStrings(strings.TrimSpace(value))
	if err != nil {
		return err
	}
	switch key = strings.TrimSpace(key); key {
	case "path":
		for _, glob := range values {
			pattern, err := compileGlob(glob)
			if err != nil {
				return err
			}
			a.globs, a.patterns = append(a.globs, glob), append(a.patterns, pattern)
		}
	case "SPDX-FileCopyrightText":
		a.copyrights = append(a.copyrights, values...)
	case licenseTag:
		for _, expression := range values {
			a.licenses = append(a.licenses, licensesOf(expression)...)
		}
	case "precedence":
	default:
		return fmt.Errorf("unknown key %q", key)
	}
	return nil
}

// parseStrings reads "a" or ["a", "b"].
func parseStrings(value string) ([]string, error) {
	items := []string{value}
	if strings.HasPrefix(value, "[") {
		inner := strings.TrimSuffix(strings.TrimPrefix(value, "["), "]")
		items = strings.Split(inner, ",")
	}
	values := make([]string, 0, len(items))
	for _, item := range items {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		text, err := strconv.Unquote(item)
		if err != nil {
			return nil, fmt.Errorf("%s is not a quoted string", item)
		}
		values = append(values, text)
	}
	return values, nil
}

// compileGlob knows what the REUSE specification knows: * stays within a directory, ** does not, \ escapes.
func compileGlob(glob string) (*regexp.Regexp, error) {
	var pattern strings.Builder
	pattern.WriteString("^")
	for i := 0; i < len(glob); i++ {
		switch {
		case strings.HasPrefix(glob[i:], "**"):
			pattern.WriteString(".*")
			i++
		case glob[i] == '*':
			pattern.WriteString("[^/]*")
		case glob[i] == '\\' && i+1 < len(glob):
			i++
			pattern.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		default:
			pattern.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		}
	}
	compiled, err := regexp.Compile(pattern.String() + "$")
	if err != nil {
		return nil, fmt.Errorf("glob %q: %w", glob, err)
	}
	return compiled, nil
}

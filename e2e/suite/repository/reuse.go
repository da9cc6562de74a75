package repository

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// licenseTag is spelled in two parts so that this file does not seem to declare a license of its own.
const licenseTag = "SPDX-License" + "-Identifier"

var (
	declared = regexp.MustCompile(licenseTag + `:[ \t]*([A-Za-z0-9(][^\n*"'<]*)`)
	operator = regexp.MustCompile(`\b(AND|OR|WITH)\b|[()]`)
)

// licensesOf takes an SPDX expression apart: "MIT OR Apache-2.0" names two licenses.
func licensesOf(expression string) []string {
	return strings.Fields(operator.ReplaceAllString(expression, " "))
}

// checkReuse says what breaks the REUSE specification among the files of a tree: files without a stated
// copyright and license, licenses without their text, texts without use, and globs that match nothing.
func checkReuse(tree fs.FS, files []string) ([]string, error) {
	text, err := fs.ReadFile(tree, "REUSE.toml")
	if err != nil {
		return nil, fmt.Errorf("read REUSE.toml: %w", err)
	}
	annotations, err := parseAnnotations(string(text))
	if err != nil {
		return nil, err
	}
	problems := idleGlobs(annotations, files)
	used := map[string]string{} // license to the first that names it
	for _, file := range files {
		if !wantsLicense(file) {
			continue
		}
		content, err := fs.ReadFile(tree, file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		problems = append(problems, checkFile(annotations, file, string(content), used)...)
	}
	return append(problems, checkTexts(files, used)...), nil
}

// wantsLicense leaves out the license texts themselves and what accompanies another file.
func wantsLicense(file string) bool {
	return file != "LICENSE" && !strings.HasPrefix(file, "LICENSES/") && path.Ext(file) != ".license"
}

// checkFile notes what licenses a file uses, by REUSE.toml (of which the last match counts) and by its own tags.
func checkFile(annotations []annotation, file, content string, used map[string]string) []string {
	var licenses, copyrights []string
	for _, a := range annotations {
		if a.covers(file) {
			licenses, copyrights = a.licenses, a.copyrights
		}
	}
	var problems []string
	if len(licenses) == 0 {
		problems = append(problems, file+": no license; add it to REUSE.toml")
	}
	if len(copyrights) == 0 {
		problems = append(problems, file+": no copyright; add it to REUSE.toml")
	}
	for _, match := range declared.FindAllStringSubmatch(content, -1) {
		licenses = append(licenses, licensesOf(match[1])...)
	}
	for _, license := range licenses {
		if used[license] == "" {
			used[license] = file
		}
	}
	return problems
}

func checkTexts(files []string, used map[string]string) []string {
	var problems []string
	for license, file := range used {
		if !slices.Contains(files, "LICENSES/"+license+".txt") {
			problems = append(problems, fmt.Sprintf("%s: is under %s, but there is no LICENSES/%s.txt", file, license, license))
		}
	}
	for _, file := range files {
		name, isText := strings.CutPrefix(file, "LICENSES/")
		if isText && used[strings.TrimSuffix(name, ".txt")] == "" {
			problems = append(problems, file+": nothing is under this license")
		}
	}
	slices.Sort(problems)
	return problems
}

func idleGlobs(annotations []annotation, files []string) []string {
	var problems []string
	for _, a := range annotations {
		for i, pattern := range a.patterns {
			if !slices.ContainsFunc(files, pattern.MatchString) {
				problems = append(problems, fmt.Sprintf("REUSE.toml: %q matches no file", a.globs[i]))
			}
		}
	}
	return problems
}

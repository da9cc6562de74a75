package main

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
)

// bill is the part of a CycloneDX document that is used here (https://cyclonedx.org/docs/1.6/json).
type bill struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PackageURL string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// subject is the program that is described.
type subject struct {
	File, Version, SHA256 string
}

// describe lists the main module, the standard library and the modules that are linked in. The linker does not record which
// module needs which, so all of them are dependencies of the program.
func describe(info *debug.BuildInfo, of subject) (bill, error) {
	program := component{
		Ref: packageURL(info.Main.Path, of.Version), Type: "application", Name: info.Main.Path, Version: of.Version,
		PackageURL: packageURL(info.Main.Path, of.Version), Hashes: []hash{{"SHA-256", of.SHA256}},
		Properties: []property{{"file", of.File}},
	}
	for _, setting := range info.Settings {
		if setting.Key == "GOOS" || setting.Key == "GOARCH" {
			program.Properties = append(program.Properties, property{setting.Key, setting.Value})
		}
	}
	components := []component{library("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		linked := library(module.Path, module.Version)
		checksum, err := checksum(module.Sum)
		if err != nil {
			return bill{}, fmt.Errorf("module %s: %w", module.Path, err)
		}
		linked.Hashes = []hash{{"SHA-256", checksum}}
		components = append(components, linked)
	}
	slices.SortFunc(components, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	needed := dependency{Ref: program.Ref}
	for _, c := range components {
		needed.DependsOn = append(needed.DependsOn, c.Ref)
	}
	return bill{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{program},
		Components: components, Dependencies: []dependency{needed},
	}, nil
}

func library(path, version string) component {
	url := packageURL(path, version)
	return component{Ref: url, Type: "library", Name: path, Version: version, PackageURL: url}
}

// packageURL is as scanners expect it (https://github.com/package-url/purl-spec, type golang).
func packageURL(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// checksum is that of go.sum, a SHA-256 over the list of the module's files, as CycloneDX writes it.
func checksum(sum string) (string, error) {
	encoded, found := strings.CutPrefix(sum, "h1:")
	if !found {
		return "", fmt.Errorf("the checksum %q is of an unknown kind", sum)
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("decode the checksum %q: %w", sum, err)
	}
	return hex.EncodeToString(decoded), nil
}

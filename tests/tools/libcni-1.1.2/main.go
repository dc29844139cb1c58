// Says what libcni makes of a directory of CNI configurations: which file it loads and what that means, or the error.
// The directory is loaded by go-cni's own code, as containerd does it. This file is the same for every version; go.mod
// pins what it is linked with.
//
//	libcni-VERSION DIR...   one JSON object a directory on standard output
//	libcni-VERSION -        one JSON object a line of standard input: {"dir":PATH}, or {"files":[{"name":..,
//	                        "body":BASE64}|{"name":..,"link":TARGET}|{"name":..,"dir":true}]} for a directory made of
//	                        these; a name may hold "/"
//	libcni-VERSION version  the versions of the two modules
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"sort"

	gocni "github.com/containerd/go-cni"
	"github.com/containernetworking/cni/libcni"
)

type file struct {
	Name string `json:"name"`
	Body []byte `json:"body"`
	Link string `json:"link"`
	Dir  bool   `json:"dir"`
}

type question struct {
	Dir   string `json:"dir"`
	Files []file `json:"files"`
}

type plugin struct {
	Type  string `json:"type"`
	Bytes []byte `json:"bytes"`
}

type answer struct {
	File       string   `json:"file,omitempty"`
	Error      string   `json:"error,omitempty"`
	Name       string   `json:"name"`
	CNIVersion string   `json:"cniVersion"`
	Plugins    []plugin `json:"plugins"`
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("give directories, \"-\" for questions on standard input, or \"version\"")
	}
	out := bufio.NewWriterSize(stdout, 1<<20)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	switch args[0] {
	case "version":
		info, _ := debug.ReadBuildInfo()
		versions := map[string]string{}
		for _, dep := range info.Deps {
			versions[dep.Path] = dep.Version
		}
		return encoder.Encode(versions)
	case "-":
		return batch(stdin, encoder, out)
	}
	for _, dir := range args {
		if err := encoder.Encode(load(dir)); err != nil {
			return err
		}
	}
	return nil
}

// batch answers each line at once, so that a caller may also hold a conversation.
func batch(stdin io.Reader, encoder *json.Encoder, out *bufio.Writer) error {
	scratch, err := os.MkdirTemp("", "libcni-")
	if err != nil {
		return fmt.Errorf("no directory for the questions: %w", err)
	}
	defer os.RemoveAll(scratch)
	in := bufio.NewReaderSize(stdin, 1<<20)
	decoder := json.NewDecoder(in)
	for i := 0; ; i++ {
		var q question
		if err := decoder.Decode(&q); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("question %d: %w", i, err)
		}
		dir := q.Dir
		if dir == "" {
			dir = filepath.Join(scratch, fmt.Sprint(i), "net.d")
			if err := lay(dir, q.Files); err != nil {
				return fmt.Errorf("question %d: %w", i, err)
			}
		}
		if err := encoder.Encode(load(dir)); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if q.Dir == "" {
			os.RemoveAll(filepath.Dir(dir))
		}
	}
}

func lay(dir string, files []file) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		var err error
		switch {
		case f.Dir:
			err = os.MkdirAll(path, 0o755)
		case f.Link != "":
			err = os.Symlink(f.Link, path)
		default:
			err = os.WriteFile(path, f.Body, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func load(dir string) answer {
	a := answer{Plugins: []plugin{}}
	// go-cni keeps to itself which file it took: the first of these.
	if files, err := libcni.ConfFiles(dir, []string{".conf", ".conflist", ".json"}); err == nil && len(files) > 0 {
		sort.Strings(files)
		a.File = filepath.Base(files[0])
	}
	loader, err := gocni.New(gocni.WithPluginConfDir(dir), gocni.WithPluginMaxConfNum(1))
	if err == nil {
		err = loader.Load(gocni.WithDefaultConf)
	}
	if err != nil {
		a.Error = err.Error()
		return a
	}
	network := loader.GetConfig().Networks[0].Config
	a.Name, a.CNIVersion = network.Name, network.CNIVersion
	for _, p := range network.Plugins {
		a.Plugins = append(a.Plugins, plugin{Type: p.Network.Type, Bytes: []byte(p.Source)})
	}
	return a
}

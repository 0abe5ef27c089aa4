package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"
)

// lostAndFound is where a file system puts what it repaired: it belongs to the volume, not to its content.
const lostAndFound = "lost+found"

// entry is one file of a volume.
type entry struct {
	name     string
	info     fs.FileInfo
	uid, gid int
	link     string
}

// walk calls f with every file of a volume, folders before their content, in a fixed order. Whatever is neither a file, a
// folder nor a symbolic link cannot travel.
func walk(root *os.Root, f func(entry) error) error {
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if name == lostAndFound && d.IsDir() {
			return fs.SkipDir
		}
		info, err := root.Lstat(name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		e := entry{name: name, info: info}
		if owner, ok := info.Sys().(*syscall.Stat_t); ok {
			e.uid, e.gid = int(owner.Uid), int(owner.Gid)
		}
		switch {
		case info.Mode().IsRegular(), info.IsDir():
		case info.Mode()&fs.ModeSymlink != 0:
			if e.link, err = root.Readlink(name); err != nil {
				return fmt.Errorf("reading the link %s: %w", name, err)
			}
		default:
			return fmt.Errorf("%s is neither a file, a folder nor a symbolic link, and cannot be moved", name)
		}
		return f(e)
	})
}

func send(root *os.Root, out io.Writer) error {
	archive := tar.NewWriter(out)
	err := walk(root, func(e entry) error {
		header, err := tar.FileInfoHeader(e.info, e.link)
		if err != nil {
			return fmt.Errorf("describing %s: %w", e.name, err)
		}
		header.Name, header.Uid, header.Gid, header.Format = e.name, e.uid, e.gid, tar.FormatPAX
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("sending %s: %w", e.name, err)
		}
		if !e.info.Mode().IsRegular() {
			return nil
		}
		return read(root, e.name, archive)
	})
	if err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	return nil
}

func read(root *os.Root, name string, into io.Writer) (err error) {
	file, err := root.Open(name)
	if err != nil {
		return fmt.Errorf("opening %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(into, file); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// receive empties the volume first: an earlier try may have left something. All paths are confined to the volume, whatever the
// archive says.
func receive(root *os.Root, in io.Reader) error {
	if err := empty(root); err != nil {
		return err
	}
	archive := tar.NewReader(in)
	// Times and rights of folders are set last: making files in them changes the one and may need the other.
	var folders []*tar.Header
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the archive: %w", err)
		}
		if header.Typeflag == tar.TypeDir {
			folders = append(folders, header)
		}
		if err := extract(root, header, archive); err != nil {
			return err
		}
	}
	for i := len(folders) - 1; i >= 0; i-- {
		if err := finish(root, folders[i]); err != nil {
			return err
		}
	}
	return nil
}

func empty(root *os.Root) error {
	old, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return fmt.Errorf("reading the volume: %w", err)
	}
	for _, e := range old {
		if e.Name() == lostAndFound {
			continue
		}
		if err := root.RemoveAll(e.Name()); err != nil {
			return fmt.Errorf("removing %s: %w", e.Name(), err)
		}
	}
	return nil
}

func extract(root *os.Root, header *tar.Header, content io.Reader) error {
	name := path.Clean(header.Name)
	switch header.Typeflag {
	case tar.TypeDir:
		if name == "." {
			return nil
		}
		if err := root.Mkdir(name, 0o700); err != nil {
			return fmt.Errorf("making folder %s: %w", name, err)
		}
		return nil
	case tar.TypeSymlink:
		if err := root.Symlink(header.Linkname, name); err != nil {
			return fmt.Errorf("making link %s: %w", name, err)
		}
		if err := root.Lchown(name, header.Uid, header.Gid); err != nil {
			return fmt.Errorf("giving %s its owner: %w", name, err)
		}
		return nil
	case tar.TypeReg:
		if err := write(root, name, content); err != nil {
			return err
		}
		return finish(root, header)
	default:
		return fmt.Errorf("the archive holds %s, which is neither a file, a folder nor a symbolic link", name)
	}
}

func write(root *os.Root, name string, content io.Reader) (err error) {
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("making %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(file, content); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("writing %s to the disk: %w", name, err)
	}
	return nil
}

// finish sets owner, rights and time. The owner comes first: changing it clears rights.
func finish(root *os.Root, header *tar.Header) error {
	name := path.Clean(header.Name)
	if err := root.Lchown(name, header.Uid, header.Gid); err != nil {
		return fmt.Errorf("giving %s its owner: %w", name, err)
	}
	if err := root.Chmod(name, header.FileInfo().Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)); err != nil {
		return fmt.Errorf("giving %s its rights: %w", name, err)
	}
	if err := root.Chtimes(name, time.Time{}, header.ModTime); err != nil {
		return fmt.Errorf("giving %s its time: %w", name, err)
	}
	return nil
}

// manifest identifies the content of a volume.
type manifest struct {
	digest         string
	entries, bytes int64
}

func identify(root *os.Root) (manifest, error) {
	var m manifest
	all := sha256.New()
	err := walk(root, func(e entry) error {
		content := sha256.New()
		size := int64(0)
		if e.info.Mode().IsRegular() {
			if err := read(root, e.name, content); err != nil {
				return err
			}
			size = e.info.Size()
		}
		m.entries++
		m.bytes += size
		_, err := fmt.Fprintf(all, "%q %v %d %d %d %q %x\n", e.name, e.info.Mode(), e.uid, e.gid, size, e.link, content.Sum(nil))
		return err
	})
	m.digest = hex.EncodeToString(all.Sum(nil))
	return m, err
}

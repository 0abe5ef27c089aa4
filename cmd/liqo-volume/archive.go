package main

import (
	"archive/tar"
	"bytes"
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

// lostAndFound is where a file system puts what it repaired. The folder belongs to the volume; what is in it is content.
const lostAndFound = "lost+found"

// sparseRecord in a file's header says that it has holes. The holes travel as zeros, and become holes again.
const sparseRecord = "LIQO.sparse"

// entry is one file of a volume.
type entry struct {
	name     string
	info     fs.FileInfo
	uid, gid int
	// link is what a symbolic link says.
	link string
	// same is an earlier name of the same file.
	same string
	// sparse is whether the file has holes.
	sparse bool
}

// inode identifies a file that has several names.
type inode struct{ device, number uint64 }

// walk calls f with every file of a volume, folders before their content, in a fixed order. Whatever is neither a file, a
// folder nor a symbolic link cannot travel.
func walk(root *os.Root, f func(entry) error) error {
	names := map[inode]string{}
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if name == lostAndFound && d.IsDir() {
			content, err := fs.ReadDir(root.FS(), name)
			if err != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			}
			if len(content) == 0 {
				return fs.SkipDir
			}
		}
		e, err := describe(root, name, names)
		if err != nil {
			return err
		}
		return f(e)
	})
}

// describe reads what is known of a file; names are those of the files that have several.
func describe(root *os.Root, name string, names map[inode]string) (entry, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return entry{}, fmt.Errorf("reading %s: %w", name, err)
	}
	e := entry{name: name, info: info}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		e.uid, e.gid = int(stat.Uid), int(stat.Gid)
		// The size of a block is always 512 there.
		e.sparse = info.Mode().IsRegular() && stat.Blocks*512 < info.Size()
		if id := (inode{uint64(stat.Dev), stat.Ino}); stat.Nlink > 1 && !info.IsDir() {
			if e.same = names[id]; e.same == "" {
				names[id] = name
			}
		}
	}
	switch {
	case info.Mode().IsRegular(), info.IsDir():
	case info.Mode()&fs.ModeSymlink != 0:
		if e.link, err = root.Readlink(name); err != nil {
			return entry{}, fmt.Errorf("reading the link %s: %w", name, err)
		}
	default:
		return entry{}, fmt.Errorf("%s is neither a file, a folder nor a symbolic link, and cannot be moved", name)
	}
	return e, nil
}

func send(root *os.Root, out io.Writer) error {
	archive := tar.NewWriter(out)
	err := walk(root, func(e entry) error {
		header, err := tar.FileInfoHeader(e.info, e.link)
		if err != nil {
			return fmt.Errorf("describing %s: %w", e.name, err)
		}
		header.Name, header.Uid, header.Gid, header.Format = e.name, e.uid, e.gid, tar.FormatPAX
		if e.sparse {
			header.PAXRecords = map[string]string{sparseRecord: "1"}
		}
		if e.same != "" {
			header.Typeflag, header.Linkname, header.Size, header.PAXRecords = tar.TypeLink, e.same, 0, nil
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("sending %s: %w", e.name, err)
		}
		if !e.info.Mode().IsRegular() || e.same != "" {
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
// archive says. Folders are given to toDisk once they are complete, so that their names outlive a crash, too.
func receive(root *os.Root, in io.Reader, toDisk func(*os.File) error) error {
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
		if err := finishFolder(root, folders[i], toDisk); err != nil {
			return err
		}
	}
	return nil
}

// finishFolder opens the folder before its rights are set: they may be without that of reading it.
func finishFolder(root *os.Root, header *tar.Header, toDisk func(*os.File) error) (err error) {
	folder, err := root.Open(path.Clean(header.Name))
	if err != nil {
		return fmt.Errorf("opening folder %s: %w", header.Name, err)
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if err := finish(root, header); err != nil {
		return err
	}
	if err := toDisk(folder); err != nil {
		return fmt.Errorf("writing folder %s to the disk: %w", header.Name, err)
	}
	return nil
}

// toDisk waits until a folder is on the disk. Some network file systems do not know this, and do it anyway.
func toDisk(folder *os.File) error {
	if err := folder.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// empty removes all but the folder that belongs to the volume.
func empty(root *os.Root) error {
	for _, folder := range []string{lostAndFound, "."} {
		old, err := fs.ReadDir(root.FS(), folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the volume: %w", err)
		}
		for _, e := range old {
			name := path.Join(folder, e.Name())
			if name == lostAndFound && e.IsDir() {
				continue
			}
			if err := root.RemoveAll(name); err != nil {
				return fmt.Errorf("removing %s: %w", name, err)
			}
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
		if err := root.Mkdir(name, 0o700); err != nil && (name != lostAndFound || !errors.Is(err, fs.ErrExist)) {
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
		return write(root, header, content)
	case tar.TypeLink:
		if err := root.Link(path.Clean(header.Linkname), name); err != nil {
			return fmt.Errorf("making %s the same file as %s: %w", name, header.Linkname, err)
		}
		return nil
	default:
		return fmt.Errorf("the archive holds %s, which is neither a file, a folder nor a symbolic link", name)
	}
}

func write(root *os.Root, header *tar.Header, content io.Reader) (err error) {
	name := path.Clean(header.Name)
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("making %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if header.PAXRecords[sparseRecord] != "" {
		err = writeSparse(file, content)
	} else {
		_, err = io.Copy(file, content)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := finish(root, header); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("writing %s to the disk: %w", name, err)
	}
	return nil
}

// hole is the size of the blocks of zeros that are not written: a multiple of any file system's own.
const hole = 64 << 10

// writeSparse leaves out what is zero.
func writeSparse(file *os.File, content io.Reader) error {
	block, zeros := make([]byte, hole), make([]byte, hole)
	for size := int64(0); ; {
		n, err := io.ReadFull(content, block)
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := file.WriteAt(block[:n], size); err != nil {
				return err
			}
		}
		size += int64(n)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return file.Truncate(size)
		case err != nil:
			return err
		}
	}
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
		if e.info.Mode().IsRegular() && e.same == "" {
			if err := read(root, e.name, content); err != nil {
				return err
			}
			size = e.info.Size()
		}
		m.entries++
		m.bytes += size
		_, err := fmt.Fprintf(all, "%q %v %d %d %d %q %q %x\n", e.name, e.info.Mode(), e.uid, e.gid, size, e.link, e.same, content.Sum(nil))
		return err
	})
	m.digest = hex.EncodeToString(all.Sum(nil))
	return m, err
}

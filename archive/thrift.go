package archive

import (
	"encoding/binary"
	"errors"
)

// errThrift says that bytes are no compact thrift.
var errThrift = errors.New("not a Parquet structure")

// thriftScan walks compact thrift without building anything. The Parquet library allocates what a list's or a
// text's length says before it reads it; a walk first makes sure that a damaged length cannot ask for more than
// there is.
type thriftScan struct {
	b     []byte
	depth int
}

const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftI8     = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
	thriftDepth  = 32
)

func (s *thriftScan) byte() (byte, error) {
	if len(s.b) == 0 {
		return 0, errThrift
	}
	c := s.b[0]
	s.b = s.b[1:]
	return c, nil
}

func (s *thriftScan) uvarint() (uint64, error) {
	v, n := binary.Uvarint(s.b)
	if n <= 0 {
		return 0, errThrift
	}
	s.b = s.b[n:]
	return v, nil
}

func (s *thriftScan) varint() (int64, error) {
	v, err := s.uvarint()
	return int64(v>>1) ^ -int64(v&1), err
}

func (s *thriftScan) skipBytes(n uint64) error {
	if n > uint64(len(s.b)) {
		return errThrift
	}
	s.b = s.b[n:]
	return nil
}

// fields walks a struct. each may take a field itself and say so; the others are skipped.
func (s *thriftScan) fields(each func(id int64, typ byte) (taken bool, err error)) error {
	if s.depth++; s.depth > thriftDepth {
		return errThrift
	}
	defer func() { s.depth-- }()
	id := int64(0)
	for {
		head, err := s.byte()
		if err != nil {
			return err
		}
		typ := head & 0x0f
		if typ == thriftStop {
			return nil
		}
		if delta := head >> 4; delta > 0 {
			id += int64(delta)
		} else if id, err = s.varint(); err != nil {
			return err
		}
		taken := false
		if each != nil {
			if taken, err = each(id, typ); err != nil {
				return err
			}
		}
		if !taken {
			if err := s.skip(typ, false); err != nil {
				return err
			}
		}
	}
}

// skip walks one value. Inside a list or map a boolean is a byte of its own.
func (s *thriftScan) skip(typ byte, element bool) error {
	switch typ {
	case thriftTrue, thriftFalse:
		if element {
			return s.skipBytes(1)
		}
		return nil
	case thriftI8:
		return s.skipBytes(1)
	case thriftI16, thriftI32, thriftI64:
		_, err := s.uvarint()
		return err
	case thriftDouble:
		return s.skipBytes(8)
	case thriftUUID:
		return s.skipBytes(16)
	case thriftBinary:
		n, err := s.uvarint()
		if err != nil {
			return err
		}
		return s.skipBytes(n)
	case thriftStruct:
		return s.fields(nil)
	case thriftList, thriftSet:
		return s.skipList()
	case thriftMap:
		return s.skipMap()
	}
	return errThrift
}

func (s *thriftScan) skipList() error {
	head, err := s.byte()
	if err != nil {
		return err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = s.uvarint(); err != nil {
			return err
		}
	}
	return s.skipMany(n, head&0x0f, 0)
}

func (s *thriftScan) skipMap() error {
	n, err := s.uvarint()
	if err != nil || n == 0 {
		return err
	}
	types, err := s.byte()
	if err != nil {
		return err
	}
	return s.skipMany(n, types>>4, types&0x0f)
}

func (s *thriftScan) skipMany(n uint64, typ, second byte) error {
	if s.depth++; s.depth > thriftDepth || n > uint64(len(s.b)) {
		return errThrift
	}
	defer func() { s.depth-- }()
	for range n {
		if err := s.skip(typ, true); err != nil {
			return err
		}
		if second != 0 {
			if err := s.skip(second, true); err != nil {
				return err
			}
		}
	}
	return nil
}

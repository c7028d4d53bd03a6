package io.pelton;

import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;

/** What {@code ParcelFileDescriptor.detachFd()} does on Android. */
final class Descriptors {
    private Descriptors() {}

    /** The descriptor of {@code stream}, which no longer knows it. */
    static int detach(FileOutputStream stream) throws Exception {
        FileDescriptor descriptor = stream.getFD();
        Field field = FileDescriptor.class.getDeclaredField("fd");
        Method unregister = FileDescriptor.class.getDeclaredMethod("unregisterCleanup");
        field.setAccessible(true);
        unregister.setAccessible(true);
        int number = field.getInt(descriptor);
        unregister.invoke(descriptor);
        field.setInt(descriptor, -1);
        return number;
    }

    /** The path behind an open descriptor; of a closed one its own. */
    static String target(int descriptor) throws Exception {
        return new File("/proc/self/fd/" + descriptor).getCanonicalPath();
    }
}

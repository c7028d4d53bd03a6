package io.pelton.example

import android.content.Context
import android.util.Base64
import java.io.File
import java.security.KeyStore

/** The authorities that this device trusts, as a PEM file that the native library reads. */
object Authorities {
    fun export(context: Context): File {
        val file = File(context.noBackupFilesDir, "authorities.pem")
        val store = KeyStore.getInstance("AndroidCAStore")
        store.load(null)
        file.bufferedWriter().use { out ->
            for (alias in store.aliases()) {
                val certificate = store.getCertificate(alias) ?: continue
                out.write("-----BEGIN CERTIFICATE-----\n")
                out.write(Base64.encodeToString(certificate.encoded, Base64.DEFAULT))
                out.write("-----END CERTIFICATE-----\n")
            }
        }
        return file
    }
}
